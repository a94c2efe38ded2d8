// Package jsnumber reads integers as JavaScript's parseInt does, which RSMQ's Node package uses for every number that it is given or has stored.
package jsnumber

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Parse returns the decimal integer that text begins with, after white space: "30abc" is 30, "1.9" is 1. ok is false where there is
// none. What does not fit is the largest or smallest there is.
func Parse(text string) (n int64, ok bool) {
	text = strings.TrimLeftFunc(text, isSpace)
	end := 0
	for end < len(text) && (isDigit(text[end]) || end == 0 && (text[end] == '-' || text[end] == '+')) {
		end++
	}
	if end == 0 || !isDigit(text[end-1]) {
		return 0, false
	}
	n, _ = strconv.ParseInt(text[:end], 10, 64) // out of range: the bound
	return n, true
}

// FromJSON is Parse for a number in a JSON text: JavaScript reads it first, and what it makes of 3e1 is "30".
func FromJSON(number json.Number) (n int64, ok bool) {
	f, err := number.Float64()
	if err != nil {
		return 0, false // beyond all numbers, "Infinity" there
	}
	format := byte('f')
	if size := math.Abs(f); size >= 1e21 || size < 1e-6 {
		format = 'e'
	}
	return Parse(strconv.FormatFloat(f, format, -1, 64))
}

// isSpace reports what JavaScript takes for white space.
func isSpace(r rune) bool {
	return unicode.Is(unicode.Zs, r) || strings.ContainsRune("\t\n\v\f\r\u2028\u2029\ufeff", r)
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }
