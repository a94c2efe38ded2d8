package cli

import (
	"os/exec"
	"syscall"
)

// endWithParent has the kernel kill a command when the thread that started it ends. What it has started itself is not killed.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }
