# SPDX-License-Identifier: Apache-2.0
"""Collective calls on all ranks of a job. Each framework adds its connections and its states."""
