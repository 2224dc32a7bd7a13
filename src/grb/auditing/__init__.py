"""Audits: how robust is this model on this data, with breaking points, who suffers, and a report to hand on."""

from __future__ import annotations

from grb.auditing.black_box import BlackBox, Program
from grb.auditing.conditions import check
from grb.auditing.report import AuditReport, schema
from grb.auditing.run import audit

__all__ = ["AuditReport", "BlackBox", "Program", "audit", "check", "schema"]
