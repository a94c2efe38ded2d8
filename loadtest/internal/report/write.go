package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Output says where a report goes.
type Output struct {
	// JSON writes JSON to the standard output, instead of text.
	JSON bool
	// Page is a file for the HTML page. Empty: none.
	Page string
}

// Write writes the page first, since whoever waits for the text may look at it next. A page that cannot be written costs nobody
// the text.
func (o Output) Write(r *Report, stdout io.Writer) error {
	var noPage error
	if o.Page != "" {
		noPage = writePage(r, o.Page)
	}
	if o.JSON {
		return errors.Join(noPage, r.JSON(stdout))
	}
	return errors.Join(noPage, r.Text(stdout))
}

// Check says whether the page can be written, before a run that may take hours.
func (o Output) Check() error {
	if o.Page == "" {
		return nil
	}
	folder := filepath.Dir(o.Page)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("the page cannot be written: there is no folder %s; make it first", folder)
	}
	if info, err := os.Stat(o.Page); err == nil && info.IsDir() {
		return fmt.Errorf("the page cannot be written: %s is a folder; name a file", o.Page)
	}
	probe, err := os.CreateTemp(folder, temporary)
	if err != nil {
		return fmt.Errorf("the page cannot be written: %w", err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return fmt.Errorf("the page cannot be written: %w", err)
	}
	return nil
}

// temporary is the pattern of the file that becomes the page.
const temporary = ".page-*"

// writePage replaces a file in one step, so that a browser never loads half of a page.
func writePage(r *Report, path string) error {
	var page bytes.Buffer
	if err := r.HTML(&page); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), temporary)
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	defer os.Remove(file.Name()) // gone already when all went well
	_, err = file.Write(page.Bytes())
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Chmod(file.Name(), 0o644) // a report is to be read, also by a web server
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
