// client CONNECTIONS PORT: fifty at a time, each sends and reads at once, then half-closes.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
)

func one(address string, number int) error {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	text := make([]byte, 200000+number)
	for n := range text {
		text[n] = byte(n*31 + n/7919 + number)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := connection.Write(text)
		if err == nil {
			err = connection.(*net.TCPConn).CloseWrite()
		}
		failed <- err
	}()
	read, err := io.ReadAll(connection)
	if err != nil {
		return err
	}
	if err := <-failed; err != nil {
		return err
	}
	if !bytes.Equal(read, text) {
		return fmt.Errorf("%d bytes of %d, or others", len(read), len(text))
	}
	return nil
}

func main() {
	connections, _ := strconv.Atoi(os.Args[1])
	address := "127.0.0.1:" + os.Args[2]
	numbers := make(chan int)
	var all sync.WaitGroup
	code := 0
	var lock sync.Mutex
	for worker := 0; worker < 50; worker++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for number := range numbers {
				if err := one(address, number); err != nil {
					lock.Lock()
					fmt.Println(number, err)
					code = 1
					lock.Unlock()
				}
			}
		}()
	}
	for number := 0; number < connections; number++ {
		numbers <- number
	}
	close(numbers)
	all.Wait()
	os.Exit(code)
}
