// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// The table of spec/registries.md: byte i of the input is i mod 251.
func TestVectors(t *testing.T) {
	text, err := os.ReadFile("../../spec/registries.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| ([0-9a-f]{32}) \|$`).FindAllStringSubmatch(string(text), -1)
	if len(rows) < 15 {
		t.Fatalf("%d vectors", len(rows))
	}
	for _, row := range rows {
		size, _ := strconv.Atoi(row[1])
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(i % 251)
		}
		if found := hash(data); hex.EncodeToString(found[:]) != row[2] {
			t.Errorf("%d bytes: %x, not %s", size, found, row[2])
		}
	}
}
