import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { root } from './workspaces.mjs';

/**
 * Runs a program to its end and resolves to its exit code (128 + n when signal n ended it). What a
 * `quiet` one prints is not shown, but comes as `output`; what a `watched` one prints to stderr is both. One with `opens` starts with the gate of
 * set-up/gate.mjs, which that opens, or else the program is killed.
 */
export function run(
  program,
  args,
  { quiet = false, watched = false, shell = false, opens, cwd = root } = {},
) {
  return new Promise((resolve) => {
    const stdio = quiet ? ['ignore', 'pipe', 'pipe'] : ['inherit', 'inherit', 'inherit'];
    if (watched) stdio[2] = 'pipe';
    if (opens !== undefined) stdio.push('pipe');
    const child = spawn(program, args, { cwd, shell, stdio });
    if (opens !== undefined) setImmediate(() => openGate(child, opens));
    const release = outlive(child, quiet);
    let output = '';
    child.stdout?.setEncoding('utf8').on('data', (text) => (output += text));
    child.stderr?.setEncoding('utf8').on('data', (text) => {
      output += text;
      if (watched) process.stderr.write(text);
    });

    const end = (result) => {
      release();
      resolve(result);
    };
    child.once('error', (error) => end({ code: 127, output: error.message }));
    child.once('close', (code, signal) =>
      end({ code: code ?? 128 + constants.signals[signal], output }),
    );
  });
}

/** The program may have ended meanwhile. */
function openGate(child, opens) {
  const [, , , gate] = child.stdio;
  gate.on('error', () => {});
  if (opens()) gate.end('1');
  else child.kill('SIGKILL');
}

export const node = (args, options) => run(process.execPath, args, options);

/** Runs the npm that started this process, or else the one on the path. */
export function npm(args, options) {
  const cli = process.env.npm_execpath;
  if (cli?.endsWith('npm-cli.js')) return node([cli, ...args], options);
  return run('npm', args, { ...options, shell: process.platform === 'win32' });
}

// Ctrl-C in a terminal reaches the child without us, and npm may send it to us once more: passing
// it on would look like a second press. A quiet child is killed: npm ci would finish, then undo all.
function outlive(child, quiet) {
  const kill = () => child.kill('SIGKILL');
  const pass = (signal) => child.kill(signal);
  const handlers = quiet
    ? { SIGINT: kill, SIGTERM: kill, SIGHUP: kill }
    : { SIGINT: () => {}, SIGTERM: pass, SIGHUP: pass };
  for (const [signal, handler] of Object.entries(handlers)) process.on(signal, handler);
  return () => {
    for (const [signal, handler] of Object.entries(handlers)) process.off(signal, handler);
  };
}
