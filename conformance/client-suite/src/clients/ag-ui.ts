import { match } from 'node:assert/strict';
import {
  type BaseEvent,
  EventType,
  getRunOutcome,
  HttpAgent,
  type HttpAgentConfig,
  type Message,
  type RunAgentInput,
  type RunAgentParameters,
  type RunFinishedEvent,
  verifyEvents,
} from '@ag-ui/client';
import { filter, firstValueFrom, from, map, Subject } from 'rxjs';
import {
  same,
  type Column,
  picture,
  picturesIn,
  textsAsked,
  thePicture,
  reason,
  resultsAsked,
} from '../column.js';
import { weather } from './chat-completions.js';
import type { Stage } from '../stage.js';

/** The client, with the route that the server has for `connectAgent`. */
class Client extends HttpAgent {
  protected override connect(input: RunAgentInput) {
    return new HttpAgent({ url: `${this.url}/connect` }).run(input);
  }
}

const clientOf = ({ url }: Stage, messages: Message[], more: Partial<HttpAgentConfig> = {}) =>
  new Client({
    url: `${url}/api/ag-ui`,
    threadId: 'chat-1',
    initialMessages: messages,
    ...more,
  });

let count = 0;
type Content = Extract<Message, { readonly role: 'user' }>['content'];

const user = (content: Content): Message => {
  count += 1;
  return { id: `q${count}`, role: 'user', content };
};

/** A run, as its client sees it. */
const runOf = (
  agent: Client,
  parameters: RunAgentParameters = {},
  method: 'run' | 'connect' = 'run',
) => {
  const events: BaseEvent[] = [];
  const changed$ = new Subject<void>();
  const errors: string[] = [];
  let outcome = 'none';
  let pending: readonly string[] = [];
  const subscriber = {
    onEvent: ({ event }: { event: BaseEvent }) => void events.push(event),
    onMessagesChanged: () => changed$.next(),
    onRunFinishedEvent: (end: { outcome: string; event: RunFinishedEvent }) => {
      ({ outcome } = end);
      const ended = getRunOutcome(end.event);
      pending = ended?.type === 'success' ? (ended.pendingToolCallIds ?? []) : [];
    },
    onRunErrorEvent: ({ event }: { event: { message: string } }) => void errors.push(event.message),
    onRunFailed: ({ error }: { error: Error }) => void errors.push(`failed: ${error.message}`),
  };
  const running =
    method === 'run'
      ? agent.runAgent(parameters, subscriber)
      : agent.connectAgent(parameters, subscriber);
  return {
    /** Until the last message has this text. */
    shows: (text: string) =>
      firstValueFrom(
        changed$.pipe(
          map(() => answerIn(agent)),
          filter((shown) => shown === text),
        ),
      ),
    ended: async () => {
      await running;
      return { events, errors, outcome, pending, complaints: complaintsOf(events) };
    },
  };
};

const answerIn = ({ messages }: Client): string => {
  const last = messages.at(-1);
  return last?.role === 'assistant' ? (last.content ?? '') : '';
};

/** What the verifier of the client says of the events. */
const complaintsOf = (events: readonly BaseEvent[]): readonly string[] => {
  const complaints: string[] = [];
  // The client has an RxJS of its own, whose types are not ours.
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- See above.
  verifyEvents()(from(events) as never).subscribe({
    error: (error: unknown) => complaints.push(String(error)),
  });
  return complaints;
};

/** A run that ends well. */
const runs = async (
  agent: Client,
  answer: string,
  parameters: RunAgentParameters = {},
  expected = 'success',
): Promise<readonly BaseEvent[]> => {
  const { events, errors, outcome, complaints } = await runOf(agent, parameters).ended();
  same([errors, complaints, outcome, answerIn(agent)], [[], [], expected, answer]);
  return events;
};

const toolMessages = ({ messages }: Client) =>
  messages.filter((message) => message.role === 'tool');

const toolCallsIn = ({ messages }: Client) =>
  messages.flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []) : []));

const twoAnswers = async (stage: Stage): Promise<Client> => {
  const agent = clientOf(stage, [user('Hi')]);
  await runs(agent, 'Hello.');
  agent.addMessage(user('1?'));
  await runs(agent, 'One.');
  return agent;
};

/** The id of the call that made a message: the beginning of its id. */
const callOf = (message: Message | undefined): string => message?.id.split('/')[0] ?? '';

/** Brings the result of the tool call that waits for it. */
const bringResult = (
  agent: Client,
  { errors, complaints, outcome, pending }: Awaited<ReturnType<ReturnType<typeof runOf>['ended']>>,
  content: string,
): void => {
  same([errors, complaints, outcome, pending.length], [[], [], 'success', 1]);
  agent.addMessage({ id: 'r1', role: 'tool', toolCallId: pending[0] ?? '', content });
};

export const agUiColumn = (version: string): Column => ({
  name: '@ag-ui/client',
  version,
  cells: {
    good: async (stage) => {
      const agent = clientOf(stage, [user('Hi')]);
      await runs(agent, 'Hello Ann.');
      same(
        agent.messages.map(({ role }) => role),
        ['user', 'assistant'],
      );
      return 'text';
    },
    parallel: async (stage) => {
      const agent = clientOf(stage, [user('Hi')]);
      await runs(agent, 'Rain in both.');
      same(
        toolMessages(agent).map(({ content }) => content),
        ['Rain in Oslo.', 'Rain in Rome.'],
      );
      return 'tool messages';
    },
    toolError: async (stage) => {
      const agent = clientOf(stage, [user('Hi')]);
      await runs(agent, 'It is broken.');
      same(
        toolMessages(agent).map(({ content }) => content),
        ['The tool failed.'],
      );
      return 'tool message';
    },
    denial: async (stage) => {
      const agent = clientOf(stage, [user('Hi')]);
      const events = await runs(agent, 'Then not.');
      same(JSON.stringify(events).includes('secret'), false);
      const [result] = events.filter(({ type }) => type === EventType.TOOL_CALL_RESULT);
      match(JSON.stringify(result), /"status":"denied"/);
      same(
        [toolMessages(agent).map(({ content }) => content), stage.paid],
        [['This tool call was denied.'], []],
      );
      return "status 'denied'";
    },
    approval: async (stage) => {
      const agent = clientOf(stage, [user('Hi')]);
      await runs(agent, '', {}, 'interrupt');
      const [interrupt] = agent.pendingInterrupts;
      same([interrupt?.reason, stage.paid], ['tool_approval', []]);
      const interruptId = interrupt?.id ?? '';
      await runs(agent, 'It is paid.', {
        resume: [{ interruptId, status: 'resolved', payload: true }],
      });
      same([agent.pendingInterrupts, stage.paid], [[], [{ amount: 5 }]]);
      return 'interrupt, resume';
    },
    refusal: async (stage) => {
      const agent = clientOf(stage, [user('Hi')]);
      await runs(agent, '', {}, 'interrupt');
      const interruptId = agent.pendingInterrupts[0]?.id ?? '';
      await runs(agent, 'Then not.', {
        resume: [{ interruptId, status: 'resolved', payload: { approved: false, reason } }],
      });
      same([agent.pendingInterrupts, stage.paid], [[], []]);
      match(resultsAsked(stage), /Too much/);
      return 'interrupt, resume';
    },
    lateApproval: async (stage) => {
      await runs(clientOf(stage, [user('Hi')]), '', {}, 'interrupt');
      const agent = clientOf(stage, []);
      const { errors, complaints, outcome } = await runOf(agent, {}, 'connect').ended();
      same([errors, complaints, outcome], [[], [], 'interrupt']);
      same(
        agent.messages.map(({ role }) => role),
        ['user', 'assistant'],
      );
      const interruptId = agent.pendingInterrupts[0]?.id ?? '';
      await runs(agent, 'It is paid.', {
        resume: [{ interruptId, status: 'resolved', payload: true }],
      });
      same([agent.pendingInterrupts, stage.paid], [[], [{ amount: 5 }]]);
      return 'connectAgent, resume';
    },
    suspended: async (stage) => {
      const agent = clientOf(stage, [user('Hi')]);
      bringResult(agent, await runOf(agent).ended(), 'Oslo');
      await runs(agent, 'You are in Oslo.');
      match(resultsAsked(stage), /Oslo/);
      return 'tool message';
    },
    clientTool: async (stage) => {
      const agent = clientOf(stage, [user('Hi')]);
      const tools = [weather];
      bringResult(agent, await runOf(agent, { tools }).ended(), 'Rain.');
      same(
        toolCallsIn(agent).map((it) => [it.function.name, it.function.arguments]),
        [['weather', '{"city":"Oslo"}']],
      );
      await runs(agent, 'It rains.', { tools });
      match(resultsAsked(stage), /Rain/);
      return 'tools, tool message';
    },
    regenerate: async (stage) => {
      const agent = await twoAnswers(stage);
      const after = callOf(agent.messages[1]);
      agent.setMessages(agent.messages.slice(0, 3));
      await runs(agent, 'Two.', { forwardedProps: { after } });
      same(textsAsked(stage), ['Hi', 'Hello.', '1?']);
      same(agent.messages.length, 4);
      return 'forwardedProps.after';
    },
    edit: async (stage) => {
      const agent = await twoAnswers(stage);
      const after = callOf(agent.messages[1]);
      agent.setMessages([...agent.messages.slice(0, 2), user('2?')]);
      await runs(agent, 'Two.', { forwardedProps: { after } });
      same(textsAsked(stage), ['Hi', 'Hello.', '2?']);
      same(agent.messages.length, 4);
      return 'forwardedProps.after';
    },
    picture: async (stage) => {
      const source = { type: 'data', value: picture, mimeType: 'image/png' } as const;
      const content: Content = [
        { type: 'text', text: 'What is it?' },
        { type: 'image', source },
      ];
      await runs(clientOf(stage, [user(content)]), 'A cat.');
      same(picturesIn(stage), thePicture);
      return 'image content';
    },
    fault: async (stage) => {
      const agent = clientOf(stage, [user('Hi')]);
      const { errors, complaints, events } = await runOf(agent).ended();
      match(errors.join(), /^The service did not respond as expected\. Please try again\.$/);
      same([complaints, stage.errors], [[], ['server']]);
      same(events.at(-1)?.type, EventType.RUN_ERROR);
      return 'RUN_ERROR';
    },
    interrupt: async (stage) => {
      const agent = clientOf(stage, [user('Hi')]);
      const run = runOf(agent);
      stage.held.say('Once');
      await run.shows('Once');
      await fetch(`${stage.url}/api/chat/chat-1/stop`, { method: 'POST' });
      const { errors, outcome, complaints } = await run.ended();
      same([errors, complaints, outcome, answerIn(agent)], [[], [], 'cancelled', 'Once']);
      return "outcome 'cancelled'";
    },
    abort: async (stage) => {
      const agent = clientOf(stage, [user('Hi')]);
      const run = runOf(agent);
      stage.held.say('Once');
      await run.shows('Once');
      agent.abortRun();
      await run.ended();
      await stage.held.left();
      same(answerIn(agent), 'Once');
      return 'abortRun';
    },
    resume: async (stage) => {
      const agent = clientOf(stage, [user('Hi')]);
      const run = runOf(agent);
      stage.held.say('Once ');
      await run.shows('Once ');
      agent.abortRun();
      await run.ended();
      const joined = runOf(agent, {}, 'connect');
      await joined.shows('Once ');
      stage.held.say('more.');
      stage.held.end();
      const { errors, complaints } = await joined.ended();
      same([errors, complaints, answerIn(agent), agent.messages.length], [[], [], 'Once more.', 2]);
      return 'connectAgent';
    },
    reload: async (stage) => {
      const before = clientOf(stage, [user('Hi')]);
      await runs(before, 'Hello.');
      before.addMessage(user('1?'));
      const run = runOf(before);
      stage.held.say('Once ');
      await run.shows('Once ');
      before.abortRun();
      await run.ended();
      const agent = clientOf(stage, []);
      const joined = runOf(agent, {}, 'connect');
      await joined.shows('Once ');
      stage.held.say('more.');
      stage.held.end();
      const { errors, complaints } = await joined.ended();
      same([errors, complaints, answerIn(agent)], [[], [], 'Once more.']);
      same(
        agent.messages.map(({ role, id }) => (role === 'user' ? role : id)),
        before.messages.map(({ role, id }) => (role === 'user' ? role : id)),
      );
      return 'MESSAGES_SNAPSHOT';
    },
  },
});
