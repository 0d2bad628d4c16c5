"""`codehub backup` and `codehub restore`: everything that is needed to come back, in one file.

The file is a tar compressed with Zstandard, with `manifest.json` as its last member, and sealed: see `archive`.
`service` names the parts that go in (tables, signing key); a new part adds members, which the manifest lists and
`archive.verify` checks without knowing what they are.

Admins have one made on a page as well: `requests` writes down what they ask for, `maker` does it in the coordinator.
"""
