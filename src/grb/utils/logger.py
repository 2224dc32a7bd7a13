"""The stream that also writes into a file."""

from grb.compat.files import Logger as Logger
