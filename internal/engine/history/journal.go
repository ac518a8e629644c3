/*
Copyright 2026 The koord-jobqueue Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package history

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/natefinch/lumberjack.v2"
)

// maxLine bounds what is read of a line, far above the longest that is written.
const maxLine = 1 << 20

// journal writes records to a file, and rotates it.
type journal struct {
	out *lumberjack.Logger
	// torn: the file may end within a line.
	torn bool
}

func newJournal(path string, maxSizeMB, maxFiles int) *journal {
	return &journal{
		out: &lumberjack.Logger{Filename: path, MaxSize: maxSizeMB, MaxBackups: maxFiles - 1}, torn: true,
	}
}

func (j *journal) write(r *Record) error {
	text, err := r.encode()
	if err != nil {
		return err
	}
	if j.torn {
		text = append([]byte{'\n'}, text...)
	}
	_, err = j.out.Write(text)
	j.torn = err != nil
	return err
}

func (j *journal) close() error { return j.out.Close() }

// Read calls visit with the records of a file and of its rotated predecessors, the oldest first, and counts the lines
// that it skips. No file is no record.
func Read(path string, visit func(*Record)) (skipped int, err error) {
	files, err := predecessors(path)
	if err != nil {
		return 0, err
	}
	for _, file := range append(files, path) {
		n, err := readFile(file, visit)
		if skipped += n; err != nil {
			return skipped, err
		}
	}
	return skipped, nil
}

// predecessors are the rotated files, the oldest first: their names have their times.
func predecessors(path string) (files []string, err error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	extension := filepath.Ext(path)
	prefix := strings.TrimSuffix(filepath.Base(path), extension) + "-"
	for _, entry := range entries { // in the order of their names
		between, ok := strings.CutPrefix(entry.Name(), prefix)
		if between, rotated := strings.CutSuffix(between, extension); ok && rotated && timeOfRotation(between) {
			files = append(files, filepath.Join(filepath.Dir(path), entry.Name()))
		}
	}
	return files, nil
}

// timeOfRotation says whether a part of a name is one that lumberjack writes, such as 2026-01-31T12-00-00.000.
func timeOfRotation(text string) bool {
	const form = "0000-00-00T00-00-00.000"
	if len(text) != len(form) {
		return false
	}
	for i := range form {
		if digit := text[i] >= '0' && text[i] <= '9'; form[i] == '0' && !digit || form[i] != '0' && text[i] != form[i] {
			return false
		}
	}
	return true
}

func readFile(path string, visit func(*Record)) (skipped int, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewReaderSize(f, maxLine)
	for tooLong := false; ; {
		text, err := lines.ReadSlice('\n')
		switch text = bytes.TrimSpace(text); {
		case errors.Is(err, bufio.ErrBufferFull):
			tooLong = true
			continue
		case tooLong:
			tooLong = false
			skipped++
		case len(text) > 0:
			if r, err := decode(text); err == nil {
				visit(r)
			} else {
				skipped++
			}
		}
		if errors.Is(err, io.EOF) {
			return skipped, nil
		}
		if err != nil {
			return skipped, err
		}
	}
}
