// Package rig starts a Redis, and producers and workers as processes of their own, runs the phases of the benchmark with them, and
// checks after each that every message was handled once.
package rig
