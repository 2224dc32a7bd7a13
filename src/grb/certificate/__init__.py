"""Certificates: what no attack within a threat model can change."""

from grb.certificate.base import Certificate, run_certificate
from grb.certificate.build import build_certificate, default_certificate
from grb.certificate.result import UNLIMITED, CertifiedResult, NotCertifiable
