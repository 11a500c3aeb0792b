import type { Message, SendMessageRequest, StreamResponse, Task } from '@a2a-js/sdk';
import { Role, TaskState } from '@a2a-js/sdk';
import { type Client, ClientFactory } from '@a2a-js/sdk/client';
import type { Agent } from 'millrace';
import { serve, type Served, type ServeOptions } from '@millrace/server/node';
import { firstValueFrom, ReplaySubject, Subject, takeUntil } from 'rxjs';
import { dataPart, messageOf, textPart } from '../parts.js';
import { a2a, type A2aOptions } from './index.js';

/** Serves an agent over A2A while a test lasts. */
export const serving = async <T>(
  agent: Agent,
  test: (served: Served) => Promise<T>,
  options: ServeOptions = {},
  protocol: A2aOptions = {},
): Promise<T> => {
  const over$ = new Subject<void>();
  const served$ = new ReplaySubject<Served>(1);
  serve(agent, { port: 0, signals: [], closeMs: 100, protocols: [a2a(protocol)], ...options })
    .pipe(takeUntil(over$))
    .subscribe(served$);
  try {
    return await test(await firstValueFrom(served$));
  } finally {
    over$.next();
  }
};

/** The SDK's client of a server. */
export const clientOf = ({ url }: Pick<Served, 'url'>): Promise<Client> =>
  new ClientFactory().createFromUrl(url);

let count = 0;

/** A message of a user: a text, or data. */
export const saying = (
  said: unknown,
  ids: { readonly taskId?: string; readonly contextId?: string } = {},
): SendMessageRequest => {
  const { taskId = '', contextId = '' } = ids;
  count += 1;
  const part = typeof said === 'string' ? textPart(said) : dataPart(said);
  const message = messageOf('user', [part], { messageId: `m${count}`, taskId, contextId });
  return { tenant: '', message, configuration: undefined, metadata: undefined };
};

export const isTask = (sent: Message | Task): sent is Task => 'status' in sent;

export const taskIn = (sent: Message | Task): Task => {
  if (isTask(sent)) return sent;
  throw new Error('The answer is a message.');
};

/** A task in short: its state, its artifacts as text, and the message of its state. */
export const shortOf = ({ status, artifacts }: Task) => ({
  state: stateOf(status?.state),
  answer: artifacts.map(({ parts }) => textOf(parts)).join('|'),
  says: textOf(status?.message?.parts ?? []),
});

export const stateOf = (state: TaskState | undefined): string =>
  TaskState[state ?? TaskState.UNRECOGNIZED].replace('TASK_STATE_', '').toLowerCase();

export const textOf = (parts: Message['parts']): string =>
  parts
    .map(({ content }) =>
      content?.$case === 'text' ? content.value : JSON.stringify(content?.value),
    )
    .join('');

interface Read {
  readonly lines: readonly string[];
  readonly task: Task;
  readonly answer: string;
}

/** Reads a stream: the updates in short, and the task as a client puts it together. */
export const readStream = async (
  stream: AsyncIterable<StreamResponse>,
  until: (line: string, answer: string) => boolean = () => false,
): Promise<Read> => {
  const lines: string[] = [];
  let task: Task | undefined;
  let answer = '';
  for await (const { payload } of stream) {
    if (payload?.$case === 'task') {
      task = payload.value;
      answer = task.artifacts.map(({ parts }) => textOf(parts)).join('|');
      lines.push(`task ${stateOf(task.status?.state)}`);
    } else if (payload?.$case === 'statusUpdate') {
      const { status } = payload.value;
      lines.push(`${stateOf(status?.state)} ${textOf(status?.message?.parts ?? [])}`.trim());
    } else if (payload?.$case === 'artifactUpdate') {
      const { artifact, append } = payload.value;
      const text = textOf(artifact?.parts ?? []);
      answer = append ? answer + text : text;
      lines.push(`${append ? '+' : '='} ${text}`);
    }
    if (until(lines.at(-1) ?? '', answer)) break;
  }
  if (task === undefined) throw new Error('The stream has no task.');
  return { lines, task, answer };
};

export const userRole = Role.ROLE_USER;
