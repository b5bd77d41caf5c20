// A file store of NATS JetStream, asked by benches/durability: `write DIRECTORY FIRST COUNT` and `read DIRECTORY`.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

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

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

func main() {
	options := &server.Options{ServerName: "one", DontListen: true, JetStream: true, StoreDir: os.Args[2], SyncAlways: true, NoSigs: true}
	own, err := server.NewServer(options)
	must(err)
	own.SetLogger(warnings{}, false, false)
	own.Start()
	if !own.ReadyForConnections(20 * time.Second) {
		must(fmt.Errorf("it does not start"))
	}
	connection, err := nats.Connect("", nats.InProcessServer(own))
	must(err)
	stream, err := connection.JetStream(nats.PublishAsyncMaxPending(256), nats.MaxWait(30*time.Second))
	must(err)
	if os.Args[1] == "write" {
		first, _ := strconv.ParseUint(os.Args[3], 10, 64)
		count, _ := strconv.ParseUint(os.Args[4], 10, 64)
		if _, err := stream.StreamInfo("MESSAGES"); err != nil {
			_, err = stream.AddStream(&nats.StreamConfig{Name: "MESSAGES", Subjects: []string{"m"}, Storage: nats.FileStorage})
			must(err)
		}
		var acknowledged []nats.PubAckFuture
		for n := first; n < first+count; n++ {
			answer, err := stream.PublishAsync("m", []byte(content(n)), nats.StallWait(time.Minute))
			must(err)
			acknowledged = append(acknowledged, answer)
		}
		for _, answer := range acknowledged {
			select {
			case <-answer.Ok():
			case err := <-answer.Err():
				must(err)
			}
		}
		fmt.Println("written")
		time.Sleep(time.Hour)
	}
	answer, err := connection.Request("$JS.API.STREAM.INFO.MESSAGES", nil, 10*time.Second)
	must(err)
	var info struct {
		Error *struct {
			Description string `json:"description"`
		} `json:"error"`
		State struct {
			Messages uint64 `json:"messages"`
			Deleted  uint64 `json:"num_deleted"`
			Lost     struct {
				Messages []uint64 `json:"msgs"`
			} `json:"lost"`
		} `json:"state"`
	}
	must(json.Unmarshal(answer.Data, &info))
	if info.Error != nil {
		must(fmt.Errorf("%s", info.Error.Description))
	}
	told := max(info.State.Deleted, uint64(len(info.State.Lost.Messages)))
	if info.State.Messages > 0 {
		subscription, err := stream.SubscribeSync("m", nats.OrderedConsumer())
		must(err)
		for {
			message, err := subscription.NextMsg(3 * time.Second)
			if err != nil {
				fmt.Fprintln(os.Stderr, "no more messages come")
				break
			}
			text, _, _ := strings.Cut(string(message.Data), ":")
			if n, err := strconv.ParseUint(text, 10, 64); err == nil && string(message.Data) == content(n) {
				fmt.Println("n", n)
			} else {
				fmt.Println("wrong")
			}
			if about, err := message.Metadata(); err == nil && about.NumPending == 0 {
				break
			}
		}
	}
	fmt.Println("told", told)
}

// Shows what the server warns of.
type warnings struct{}

func (warnings) Noticef(string, ...any)        {}
func (warnings) Debugf(string, ...any)         {}
func (warnings) Tracef(string, ...any)         {}
func (warnings) Warnf(form string, of ...any)  { fmt.Fprintf(os.Stderr, form+"\n", of...) }
func (warnings) Errorf(form string, of ...any) { fmt.Fprintf(os.Stderr, form+"\n", of...) }
func (warnings) Fatalf(form string, of ...any) { fmt.Fprintf(os.Stderr, form+"\n", of...) }
