# SPDX-License-Identifier: Apache-2.0
"""Calls that all ranks of a job make together. A framework adds how its ranks are connected, and how its states are read."""
