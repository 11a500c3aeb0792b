import type { ChildProcess } from 'node:child_process';
import process from 'node:process';
import {
  parseJSONRPCMessage,
  serializeMessage,
  SdkError,
  SdkErrorCode,
  type Transport,
} from '@modelcontextprotocol/client';
import { getDefaultEnvironment } from '@modelcontextprotocol/client/stdio';
import spawn from 'cross-spawn';
import {
  concatMap,
  defer,
  delay,
  EMPTY,
  firstValueFrom,
  fromEvent,
  merge,
  noop,
  type Observable,
  of,
  switchMap,
  take,
  tap,
  timeout,
} from 'rxjs';
import { endGroup$, endWithProcess, signalGroup } from './process-group.js';
import type { MessageReader } from './message-reader.js';
import type { StdioServer } from './server-options.js';

/** How long a child process has to end: after the end of its input, and after each signal. */
const politeMs = 2_000;
/** How long its last output is awaited: others may hold its pipes. */
const lastOutputMs = 250;

/**
 * A server as a child process that leads a process group, which ends with the connection and with this process. The
 * transport of the SDK ends the child only: what `npx` or a shell has started stays.
 */
export const overStdio = (
  { command, args = [], env, cwd, stderr = 'ignore' }: StdioServer,
  maxBytes: number,
  reader: MessageReader,
  tooLong: () => void,
): Transport => {
  let child: ChildProcess | undefined;
  const fail = (error: Error): void => transport.onerror?.(error);
  const read = (line: string): void => deliver(line, reader, transport, fail);
  const start = async (): Promise<void> => {
    const started = spawn(command, [...args], {
      env: { ...getDefaultEnvironment(), ...env },
      stdio: ['pipe', 'pipe', stderr],
      detached: process.platform !== 'win32',
      windowsHide: true,
      ...(cwd !== undefined && { cwd }),
    });
    child = started;
    const release = endWithProcess(started);
    started.stdin?.on('error', noop);
    started.stdout?.on('error', fail);
    started.stdout?.on('data', linesOf(maxBytes, read, tooLong));
    ended$(started)
      .pipe(
        tap(() => transport.onclose?.()),
        concatMap(() => closed(started)),
        concatMap(() => endGroup$(started, politeMs)),
      )
      .subscribe({ error: fail, complete: release });
    await new Promise((resolve, reject) => {
      started.once('spawn', resolve);
      started.once('error', reject);
    });
  };
  const transport: Transport = {
    start,
    send: (message) =>
      new Promise((resolve, reject) => {
        const input = child?.stdin;
        if (input?.writable !== true) {
          reject(new SdkError(SdkErrorCode.NotConnected, 'Not connected'));
          return;
        }
        reader.sent(message);
        // Also if it fails: then the connection ends.
        input.write(serializeMessage(message), () => resolve());
      }),
    close: () => (child === undefined ? Promise.resolve() : closed(child)),
  };
  return transport;
};

const deliver = (
  line: string,
  reader: MessageReader,
  transport: Transport,
  fail: (error: Error) => void,
): void => {
  const parsed = messagesIn(line);
  for (const message of Array.isArray(parsed) ? parsed : [parsed]) {
    try {
      const readable = reader.received(message);
      if (readable !== undefined) transport.onmessage?.(parseJSONRPCMessage(readable));
    } catch (cause) {
      fail(cause instanceof Error ? cause : new Error(String(cause)));
    }
  }
};

/** Emits once when a child process and its output have ended, or when it can no longer be asked or answer. */
const ended$ = (child: ChildProcess): Observable<unknown> =>
  merge(
    fromEvent(child, 'close'),
    child.stdin === null ? EMPTY : fromEvent(child.stdin, 'error'),
    child.stdout === null ? EMPTY : fromEvent(child.stdout, 'end').pipe(delay(lastOutputMs)),
    fromEvent(child, 'exit').pipe(delay(lastOutputMs)),
    fromEvent(child, 'error').pipe(switchMap(() => (child.pid === undefined ? of(0) : EMPTY))),
  ).pipe(take(1));

/** Ends the input of a child process, then its group with SIGTERM, then with SIGKILL. */
const closed = async (child: ChildProcess): Promise<void> => {
  const hasEnded = (): boolean =>
    child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
  const end$ = defer(() => (hasEnded() ? of(0) : fromEvent(child, 'exit').pipe(take(1))));
  const within = (next$: Observable<unknown>): Observable<unknown> =>
    end$.pipe(timeout({ first: politeMs, with: () => next$ }));
  const signalled = (signal: NodeJS.Signals): void => signalGroup(child, signal);
  child.stdin?.end();
  const killed$ = defer(() => {
    signalled('SIGKILL');
    return of(0);
  });
  const stopped$ = defer(() => {
    signalled('SIGTERM');
    return within(killed$);
  });
  await firstValueFrom(within(stopped$));
};

/**
 * The messages of a line, or an empty list: other lines are the log of a program that mistakes its output for one. Such a log
 * may also precede a message in its line.
 */
const messagesIn = (line: string): unknown => {
  for (const text of [line, line.slice(Math.max(0, line.indexOf('{"jsonrpc"')))]) {
    try {
      return JSON.parse(text);
    } catch {
      // Not JSON.
    }
  }
  return [];
};

/** Splits output into lines, which may come in pieces. A longer one than `maxBytes` is the end. */
const linesOf = (
  maxBytes: number,
  read: (line: string) => void,
  tooLong: () => void,
): ((chunk: Buffer) => void) => {
  let parts: Buffer[] = [];
  let bytes = 0;
  return (chunk) => {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      const line = Buffer.concat([...parts, chunk.subarray(from, at)])
        .toString('utf8')
        .trim();
      parts = [];
      bytes = 0;
      from = at + 1;
      if (line.length > maxBytes) tooLong();
      else if (/^[{[]|\{"jsonrpc"/.test(line)) read(line);
    }
    parts.push(chunk.subarray(from));
    bytes += chunk.length - from;
    if (bytes <= maxBytes) return;
    parts = [];
    bytes = 0;
    tooLong();
  };
};
