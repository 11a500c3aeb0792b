import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
} from 'node:fs';
import { symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { lentToolContext } from 'millrace/testing';
import { lastValueFrom, ReplaySubject, VirtualTimeScheduler } from 'rxjs';
import type { SandboxResult } from '../file-system.js';
import { fileSystemContract } from '../testing/file-system-contract.js';
import { ran, sandboxContract } from '../testing/sandbox-contract.js';
import { bubblewrap, type BubblewrapOptions } from './bubblewrap.js';

const root = realpathSync(mkdtempSync(join(tmpdir(), 'deep-bwrap-')));
afterAll(() => rmSync(root, { recursive: true }));
chmodSync(root, 0o755);
const isRoot = process.getuid?.() === 0;
const newDirectory = () => {
  const directory = mkdtempSync(join(root, 'work-'));
  // Root runs no code, but nobody may.
  if (isRoot) chownSync(directory, 65_534, 65_534);
  return directory;
};
const create = (options: Partial<BubblewrapOptions> = {}) =>
  bubblewrap({ directory: newDirectory(), timeoutMs: 60_000, ...options });

const programs = {
  hello: 'print("hello")',
  copy: `import os
os.mkdir("out")
with open("out/result.txt", "w") as f: f.write(open("in.txt").read().upper())`,
  fail: 'raise ValueError("the reason")',
  endless: 'while True: pass',
  started: 'import time\nprint("started")\ntime.sleep(1000)',
  memory: 'x = b"x" * 10**9\nprint(len(x))',
  output: 'print("x" * 10_000_000)',
};

describe('X20: a sandbox of bubblewrap', () => {
  const withTimeout = (timeoutMs: number) => create({ timeoutMs });
  for (const { name, run } of sandboxContract(withTimeout, programs)) it(name, run);
  const files = fileSystemContract(() => create({ maxBytes: 10_000 }), { maxBytes: 10_000 });
  for (const { name, run } of files) it(`as a file system, ${name}`, run);

  it('has no environment, no files of the machine, no privileges, and cannot write outside', async () => {
    process.env['DEEP_SECRET'] = 'hunter2';
    const code = `
import os, ctypes
print(sorted(os.environ))
print(sorted(os.listdir("/")))
print(os.getuid(), os.listdir("/tmp"), os.path.exists("${root}"), os.path.exists("/etc"))
libc = ctypes.CDLL(None, use_errno=True)
print([libc.mount(b"none", b"/tmp", b"tmpfs", 0, None), libc.unshare(0x10000000), libc.sethostname(b"x", 1)])
for path in ["/usr/x", "/code.py", "/x", "/dev/x", "/dev/shm/x", "/etc/x", "/proc/sys/kernel/core_pattern", "../x"]:
    try:
        open(path, "w").write("x"); print("wrote", path)
    except OSError as e:
        pass
print("done")`;
    const { text } = await ran(create(), code);
    expect(text.split('\n')).toEqual([
      "['HOME', 'LANG', 'PATH', 'PWD', 'PYTHONUNBUFFERED']",
      "['bin', 'code.py', 'dev', 'lib', 'lib64', 'tmp', 'usr', 'work']",
      '1000 [] False False',
      '[-1, -1, -1]',
      'done',
      '',
      '[Exit code 0.]',
    ]);
  });

  it('sees no process of the machine, and reaches none', async () => {
    const code = `
import os
print(os.path.exists("/proc"))
try:
    os.kill(${process.pid}, 0); print("reached")
except OSError: print("refused")`;
    expect((await ran(create(), code)).text).toMatch(/^False\nrefused\n/u);
  });

  it('runs nothing as root, and lets code change what the tools wrote', async () => {
    const directory = newDirectory();
    const sandbox = create({ directory });
    await lastValueFrom(sandbox.write$('new/a', 'one', 'k'));
    const code = 'open("new/a", "a").write(" two"); open("new/b", "w")';
    expect(await ran(sandbox, code)).toMatchObject({ exitCode: 0, files: ['new/a', 'new/b'] });
    expect(await lastValueFrom(sandbox.read$('new/a'))).toBe('one two');
    if (isRoot) expect(() => create({ directory: root })).toThrow('runs no code as root');
  });

  describe('on the network', () => {
    let server: Server;
    let port = 0;
    beforeAll(async () => {
      server = createServer((socket) => socket.end('here')).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const address = server.address();
      port = typeof address === 'object' && address !== null ? address.port : 0;
    });
    afterAll(() => void server.close());
    const connect = () => `import socket
try:
    print(socket.create_connection(("127.0.0.1", ${port}), 5).recv(10).decode())
except OSError as e:
    print("refused")`;

    it('reaches no one, unless the option is set', async () => {
      expect((await ran(create(), connect())).text).toContain('refused');
      expect((await ran(create({ network: true }), connect())).text).toContain('here');
    });
  });

  it('limits the size of a file and the number of processes', async () => {
    const big = 'f = open("big", "wb")\nfor _ in range(3): f.write(b"x" * 2**20)\nf.flush()';
    const directory = newDirectory();
    const { exitCode } = await ran(create({ directory, maxFileMb: 1 }), big);
    expect(exitCode).not.toBe(0);
    expect(readFileSync(join(directory, 'big')).length).toBeLessThanOrEqual(2 ** 20);
    const bomb = `import os, time
count = 0
try:
    for _ in range(500):
        if os.fork() == 0:
            time.sleep(60); os._exit(0)
        count += 1
except OSError: pass
print(count < 100, flush=True)`;
    expect((await ran(create({ maxProcesses: 20 }), bomb)).text).toContain('True');
  });

  it('kills all processes when the caller leaves, also those in sessions of their own', async () => {
    const directory = newDirectory();
    const marker = basename(directory);
    const code = `import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() > 0: os._exit(0)
    open("on", "w")
    os.execv("/usr/bin/python3", ["${marker}", "-c", "import time; time.sleep(1000)"])
print("started")
time.sleep(1000)`;
    const seen$ = new ReplaySubject<string | SandboxResult>(Infinity);
    const run = create({ directory }).run$(code, lentToolContext()).subscribe(seen$);
    while (!existsSync(join(directory, 'on')) || processesOf(marker) < 3) await turn();
    run.unsubscribe();
    while (processesOf(marker) > 0) await turn();
    expect(readdirSync(tmpdir()).filter((it) => isCodeWith(marker, it))).toEqual([]);
  });

  it('counts time on the scheduler of the call', async () => {
    const scheduler = new VirtualTimeScheduler();
    const directory = newDirectory();
    const code = 'open("on", "w")\nwhile True: pass';
    const seen$ = new ReplaySubject<string | SandboxResult>(Infinity);
    create({ directory, timeoutMs: 5_000 })
      .run$(code, lentToolContext({ scheduler }))
      .subscribe(seen$);
    while (!existsSync(join(directory, 'on'))) await turn();
    scheduler.flush();
    expect(await lastValueFrom(seen$)).toMatchObject({
      text: 'The code was stopped after 5000 ms.',
    });
    expect(scheduler.frame).toBe(5_000);
  });

  it('follows no link that code has left, when a tool reads or writes', async () => {
    const directory = newDirectory();
    const sandbox = create({ directory });
    writeFileSync(join(root, 'other.txt'), 'secret');
    const links = `import os
os.symlink("${root}/other.txt", "a"); os.symlink("${root}", "b"); os.mkfifo("pipe")`;
    await ran(sandbox, links);
    await expect(lastValueFrom(sandbox.read$('a'))).rejects.toThrow('outside');
    await expect(lastValueFrom(sandbox.write$('b/other.txt', 'x', 'k'))).rejects.toThrow('outside');
    await expect(lastValueFrom(sandbox.read$('pipe'))).rejects.toThrow('not a regular file');
    symlinkSync('/', join(directory, 'slash'));
    await expect(lastValueFrom(sandbox.read$('slash/etc/passwd'))).rejects.toThrow('outside');
  });

  it('names the fix if it cannot start', async () => {
    const missing = create({ program: '/nowhere/bwrap' });
    await expect(ran(missing, '1')).rejects.toThrow(/cannot (?:be started|start)/u);
    expect(() => bubblewrap({} as never)).toThrow("'directory'");
    expect(() => create({ memoryMb: 1 })).toThrow("'memoryMb'");
  });
});

const turn = () => new Promise(setImmediate);

/** Whether a folder for temporary files has the code of a run. Other tests have theirs. */
const isCodeWith = (word: string, folder: string): boolean => {
  if (!folder.startsWith('millrace-code-')) return false;
  try {
    return readFileSync(join(tmpdir(), folder, 'code'), 'utf8').includes(word);
  } catch {
    return false;
  }
};

/** The number of processes with a word in their arguments: bubblewrap, which has the directory, and the code that took it as its name. */
const processesOf = (word: string): number =>
  readdirSync('/proc').filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(word);
    } catch {
      return false;
    }
  }).length;
