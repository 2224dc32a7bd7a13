"""A check for continuous integration: fail if the model is less robust than it was promised to be.

The same from the command line, in a GitHub Actions workflow:

    - run: grb audit model.safetensors --effort quick --fail-under 'worst_case.accuracy>=0.3' -o audit.sarif -o audit.md
    - uses: github/codeql-action/upload-sarif@v3
      if: always()
      with: { sarif_file: audit.sarif }
"""

import sys
import tempfile
from pathlib import Path

import grb
from grb.auditing import check

PROMISED = "clean.accuracy>=0.7,worst_case.accuracy>=0.3,injection.breaking_point>=2"

dataset = grb.load_dataset("synth-tiny")
model = grb.train("gcn", dataset, epochs=60)
report = grb.audit(model, dataset, effort="quick", scenarios=["injection"], corrupt=False)
folder = Path(tempfile.mkdtemp())
for name in ("audit.sarif", "audit.md", "audit.json"):
    report.save(folder / name)
outcomes = check(report, PROMISED)
for outcome in outcomes:
    print(outcome)
sys.exit(0 if all(outcome.holds for outcome in outcomes) else 1)
