import { match, rejects } from 'node:assert/strict';
import {
  type Message,
  type Part,
  Role,
  type SendMessageRequest,
  type StreamResponse,
  type Task,
  TaskState,
} from '@a2a-js/sdk';
import { type Client, ClientFactory } from '@a2a-js/sdk/client';
import { TaskNotFoundError } from '@a2a-js/sdk/errors';
import {
  same,
  type Column,
  picture,
  picturesIn,
  thePicture,
  reason,
  resultsAsked,
} from '../column.js';
import { isRecord } from 'millrace/values';
import type { Stage } from '../stage.js';

const clientOf = ({ url }: Stage): Promise<Client> => new ClientFactory().createFromUrl(url);

const partOf = (content: NonNullable<Part['content']>, mediaType: string): Part => ({
  content,
  mediaType,
  filename: '',
  metadata: undefined,
});

let count = 0;
const saying = (
  said: string | object,
  { taskId = '', more = [] }: { readonly taskId?: string; readonly more?: readonly Part[] } = {},
): SendMessageRequest => {
  count += 1;
  const message: Message = {
    messageId: `m${count}`,
    contextId: '',
    taskId,
    role: Role.ROLE_USER,
    parts: [
      typeof said === 'string'
        ? partOf({ $case: 'text', value: said }, 'text/plain')
        : partOf({ $case: 'data', value: said }, 'application/json'),
      ...more,
    ],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
  return { tenant: '', message, configuration: undefined, metadata: undefined };
};

const textOf = (parts: readonly Part[] = []): string =>
  parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');

const answerOf = ({ artifacts }: Task): string =>
  artifacts.map(({ parts }) => textOf(parts)).join('|');

const stateOf = (state: TaskState | undefined): string =>
  TaskState[state ?? TaskState.UNRECOGNIZED].replace('TASK_STATE_', '').toLowerCase();

/** What a client puts together from a stream. */
interface Read {
  readonly id: string;
  readonly state: string;
  readonly says: string;
  readonly answer: string;
  /** The states of the tools. */
  readonly tools: readonly unknown[];
}

interface Readers {
  /** Leaves the stream. */
  readonly until?: (answer: string) => boolean;
  readonly sees?: (answer: string) => void;
}

const read = async (
  stream: AsyncIterable<StreamResponse>,
  { until = () => false, sees = () => undefined }: Readers = {},
): Promise<Read> => {
  let seen: Read = { id: '', state: '', says: '', answer: '', tools: [] };
  for await (const { payload } of stream) {
    seen = next(seen, payload);
    sees(seen.answer);
    if (until(seen.answer)) break;
  }
  return seen;
};

const next = (seen: Read, payload: StreamResponse['payload']): Read => {
  switch (payload?.$case) {
    case 'task': {
      const { id, status } = payload.value;
      return { ...seen, id, state: stateOf(status?.state), answer: answerOf(payload.value) };
    }
    case 'statusUpdate': {
      const { status, metadata } = payload.value;
      const tool = toolStatusIn(metadata);
      return {
        ...seen,
        state: stateOf(status?.state),
        says: textOf(status?.message?.parts),
        tools: isTurn(tool) ? [...seen.tools, tool] : seen.tools,
      };
    }
    case 'artifactUpdate': {
      const { artifact, append } = payload.value;
      const text = textOf(artifact?.parts);
      return { ...seen, answer: append ? seen.answer + text : text };
    }
    default:
      return seen;
  }
};

const toolStatusIn = (metadata: Readonly<Record<string, unknown>> | undefined): unknown => {
  const millrace = metadata?.['millrace'];
  const tool = isRecord(millrace) ? millrace['tool'] : undefined;
  return isRecord(tool) ? tool['status'] : undefined;
};

const isTurn = (status: unknown): boolean => status !== undefined && status !== 'running';

/** A task that is completed, and that the client finds with the same answer. */
const answers = async (stage: Stage, answer: string, asked = saying('Hi')): Promise<Read> => {
  const client = await clientOf(stage);
  const seen = await read(client.sendMessageStream(asked));
  same([seen.state, seen.answer], ['completed', answer]);
  const found = await client.getTask({ tenant: '', id: seen.id });
  same([stateOf(found.status?.state), answerOf(found)], ['completed', answer]);
  return seen;
};

/** The rest of the answer follows once the client has seen its beginning. */
const endsWell = ({ held }: Stage): Readers => ({
  sees: (answer) => {
    if (answer !== 'Once ') return;
    held.say('more.');
    held.end();
  },
});

/** A stream that its client leaves once it has seen this. */
const left = async (client: Client, stage: Stage): Promise<Read> => {
  stage.held.say('Once ');
  return read(client.sendMessageStream(saying('Hi')), { until: (answer) => answer === 'Once ' });
};

export const a2aColumn = (version: string): Column => ({
  name: '@a2a-js/sdk',
  version,
  cells: {
    good: async (stage) => {
      await answers(stage, 'Hello Ann.');
      return 'artifact';
    },
    parallel: async (stage) => {
      const { tools } = await answers(stage, 'Rain in both.');
      same(tools, ['started', 'started', 'done', 'done']);
      return 'answer, progress';
    },
    toolError: async (stage) => {
      const { id, tools } = await answers(stage, 'It is broken.');
      const found = await (await clientOf(stage)).getTask({ tenant: '', id });
      same(JSON.stringify(found).includes('secret'), false);
      same(tools, ['started', 'failed']);
      return 'answer, progress';
    },
    denial: async (stage) => {
      const { tools } = await answers(stage, 'Then not.');
      same([tools, stage.paid], [['started', 'failed'], []]);
      return 'answer, progress';
    },
    approval: async (stage) => {
      const client = await clientOf(stage);
      const { id, state, says } = await read(client.sendMessageStream(saying('Hi')));
      same([state, stage.paid], ['input_required', []]);
      match(says, /^Approve the tool 'pay'\?/);
      await answers(stage, 'It is paid.', saying('yes', { taskId: id }));
      same(stage.paid, [{ amount: 5 }]);
      return 'input-required';
    },
    refusal: async (stage) => {
      const client = await clientOf(stage);
      const { id } = await read(client.sendMessageStream(saying('Hi')));
      await answers(stage, 'Then not.', saying({ approved: false, reason }, { taskId: id }));
      same(stage.paid, []);
      match(resultsAsked(stage), /Too much/);
      return 'data part';
    },
    lateApproval: async (stage) => {
      const { id } = await read((await clientOf(stage)).sendMessageStream(saying('Hi')));
      const { status } = await (await clientOf(stage)).getTask({ tenant: '', id });
      same(stateOf(status?.state), 'input_required');
      match(textOf(status?.message?.parts), /^Approve the tool 'pay'\?/);
      await answers(stage, 'It is paid.', saying('yes', { taskId: id }));
      same(stage.paid, [{ amount: 5 }]);
      return 'getTask';
    },
    suspended: async (stage) => {
      const client = await clientOf(stage);
      const { id, state, says } = await read(client.sendMessageStream(saying('Hi')));
      same([state, says], ['input_required', 'Where are you?']);
      const ended = await answers(stage, 'You are in Oslo.', saying('Oslo', { taskId: id }));
      same(ended.id, id);
      match(resultsAsked(stage), /Oslo/);
      return 'input-required';
    },
    clientTool: 'messages have no tool definitions',
    regenerate: 'messages cannot be taken back',
    edit: 'messages cannot be taken back',
    picture: async (stage) => {
      const value = Buffer.from(picture, 'base64');
      const image = partOf({ $case: 'raw', value }, 'image/png');
      await answers(stage, 'A cat.', saying('What is it?', { more: [image] }));
      same(picturesIn(stage), thePicture);
      return 'raw part';
    },
    fault: async (stage) => {
      const client = await clientOf(stage);
      const { state, says } = await read(client.sendMessageStream(saying('Hi')));
      same(state, 'failed');
      match(says, /^The service did not respond as expected\. Please try again\.$/);
      same(stage.errors, ['server']);
      return "state 'failed'";
    },
    interrupt: async (stage) => {
      const client = await clientOf(stage);
      const { id } = await left(client, stage);
      const task = await client.cancelTask({ tenant: '', id, metadata: {} });
      same([stateOf(task.status?.state), answerOf(task)], ['canceled', 'Once ']);
      return 'cancelTask';
    },
    abort: async (stage) => {
      const client = await clientOf(stage);
      const { id } = await left(client, stage);
      await stage.held.left();
      // Nothing of an aborted call stays.
      await rejects(client.getTask({ tenant: '', id }), TaskNotFoundError);
      return 'task not found';
    },
    resume: async (stage) => {
      const client = await clientOf(stage);
      const { id } = await left(client, stage);
      const joined = client.resubscribeTask({ tenant: '', id });
      const seen = await read(joined, endsWell(stage));
      same([seen.state, seen.answer], ['completed', 'Once more.']);
      return 'resubscribeTask';
    },
    reload: async (stage) => {
      const client = await clientOf(stage);
      await answers(stage, 'Hello.');
      const { id } = await left(client, stage);
      const again = await clientOf(stage);
      const task = await again.getTask({ tenant: '', id });
      same([stateOf(task.status?.state), answerOf(task)], ['working', 'Once ']);
      same(
        task.history.map(({ parts }) => textOf(parts)),
        ['Hi'],
      );
      const seen = await read(again.resubscribeTask({ tenant: '', id }), endsWell(stage));
      same([seen.state, seen.answer], ['completed', 'Once more.']);
      return 'getTask, resubscribeTask';
    },
  },
});
