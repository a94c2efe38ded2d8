package rsmqmigrate

//go:generate go run ../luagen/cmd -lua lua -out lua_gen.go -package rsmqmigrate -keys keySet

// keySet are the keys of both queues.
type keySet struct {
	Hash, Messages string // RSMQ
	Queue, Delayed string // xstreamq
}
