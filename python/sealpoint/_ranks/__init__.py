# SPDX-License-Identifier: Apache-2.0
"""Collective calls of all ranks of a job. A framework adds its connections and its states."""
