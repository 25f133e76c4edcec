# SPDX-License-Identifier: Apache-2.0
"""A second reader of Sealpoint checkpoints, written from spec/ alone."""
