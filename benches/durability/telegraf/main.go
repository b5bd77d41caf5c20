// Telegraf's disk buffer, asked by benches/durability: `write DIRECTORY FIRST COUNT` and `read DIRECTORY`.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/influxdata/telegraf/metric"
	"github.com/influxdata/telegraf/models"
	"github.com/influxdata/telegraf/selfstat"
)

// Messages that are taken out at a time.
const batch = 1000

// What message n says: the same in every program here.
func content(n uint64) string {
	text := fmt.Sprintf("%d:", n)
	for x, left := step(n), 8+n%16; left > 0; left-- {
		x = step(x)
		text += fmt.Sprintf("%016x", x)
	}
	return text
}

func step(x uint64) uint64 { return x*6364136223846793005 + 1442695040888963407 }

func main() {
	stat := func(name string) selfstat.Stat { return selfstat.Register("buffer", name, map[string]string{}) }
	stats := models.BufferStats{
		MetricsAdded: stat("added"), MetricsWritten: stat("written"), MetricsRejected: stat("rejected"),
		MetricsDropped: stat("dropped"), BufferSize: stat("size"), BufferLimit: stat("limit"),
	}
	metric.Init()
	buffer, err := models.NewDiskBuffer("messages", os.Args[2], stats)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	if os.Args[1] == "write" {
		first, _ := strconv.ParseUint(os.Args[3], 10, 64)
		count, _ := strconv.ParseUint(os.Args[4], 10, 64)
		for n := first; n < first+count; n++ {
			if dropped := buffer.Add(metric.New("m", nil, map[string]interface{}{"text": content(n)}, time.Unix(int64(n), 0))); dropped > 0 {
				fmt.Fprintln(os.Stderr, "a message was dropped")
				os.Exit(4)
			}
		}
		fmt.Println("written")
		time.Sleep(time.Hour)
	}
	for {
		taken := buffer.BeginTransaction(batch)
		if len(taken.Batch) == 0 {
			return
		}
		for number, found := range taken.Batch {
			n := uint64(found.Time().Unix())
			if text, _ := found.GetField("text"); text == content(n) {
				fmt.Println("n", n)
			} else {
				fmt.Println("wrong")
			}
			taken.Accept = append(taken.Accept, number)
		}
		buffer.EndTransaction(taken)
	}
}
