"""Scripts are run by test_scripts.py, cell by cell; they are no modules of tests."""

collect_ignore_glob = ["scripts/*"]
