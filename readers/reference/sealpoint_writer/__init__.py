# SPDX-License-Identifier: Apache-2.0
"""A writer of Sealpoint checkpoints, from the specification alone. README.md of the folder above says how it is used."""
