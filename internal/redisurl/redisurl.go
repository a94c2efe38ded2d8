package redisurl

import "github.com/redis/rueidis"

func Parse(raw string) (rueidis.ClientOption, error) { return rueidis.ParseURL(raw) }
