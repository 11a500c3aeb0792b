import { describe, expect, it } from '@jest/globals';
import { type AgentEvent, createAgent, fromPull, type ModelChunk } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import { concat, filter, finalize, firstValueFrom, NEVER, type Observable, of, take } from 'rxjs';
import {
  answerAmong,
  answerIn,
  installed,
  linesOf,
  linesOfRun,
  readStream,
  watched,
} from './read-as-client.test-support.js';
import { type Scenario, scenarios } from './scenarios.test-support.js';
import { agUiClient, type Answer, askByAiSdk, serving } from './serve-scenarios.test-support.js';

const named = (name: string): Scenario => {
  const found = scenarios.find((it) => it.name === name);
  if (found === undefined) throw new Error(`There is no scenario '${name}'.`);
  return found;
};
const played: Answer = (name, demand) => named(name).stream$({ demand, callId: 'c' });

describe('over HTTP, with the clients of the protocols', () => {
  it.each(scenarios)('I9: both end up with the reply: $name', ({ name, answer, error }) =>
    serving(played, async (url) => {
      const { message, errors } = await readStream(await askByAiSdk(url, name));
      expect(errors).toEqual(error === undefined ? [] : [`Error: ${error}`]);
      expect(answer === undefined ? undefined : answerIn(message)).toBe(answer);

      const run = await watched(agUiClient(url, name));
      expect(run.errors).toEqual(error === undefined ? [] : [error]);
      expect(answer === undefined ? undefined : answerAmong(run)).toBe(answer);
      expect(run.events[0]).toMatchObject({ type: 'RUN_STARTED', threadId: 'thread-1' });
    }),
  );
});

interface Row {
  readonly name: string;
  /** The parts of the message, line by line. */
  readonly aiSdk: readonly string[];
  /** The same, where readers of version 7 see it otherwise. */
  readonly aiSdk7?: readonly string[];
  /** The messages, and how the run ended. */
  readonly agUi: readonly string[];
}

const rows: readonly Row[] = [
  {
    name: 'text and thinking',
    aiSdk: ['step-start', 'reasoning: Let me see.', 'text: Hello there.'],
    agUi: ['reasoning: "Let me see."', 'assistant: "Hello there."', 'RUN_FINISHED success'],
  },
  {
    name: 'parallel tools',
    aiSdk: [
      'step-start',
      'text: I look. ',
      'weather {"city":"Oslo"} output-available: "Rain in Oslo."',
      'weather {"city":"Rome"} output-available: "Rain in Rome."',
      'step-start',
      'text: Rain everywhere.',
    ],
    agUi: [
      'assistant: "I look. " [weather {"city":"Oslo"}] [weather {"city":"Rome"}]',
      'tool: "Rain in Oslo."',
      'tool: "Rain in Rome."',
      'assistant: "Rain everywhere."',
      'RUN_FINISHED success',
    ],
  },
  {
    name: 'a tool error',
    aiSdk: [
      'step-start',
      'broken {} output-error: "The tool failed."',
      'step-start',
      'text: It is broken.',
    ],
    agUi: [
      'assistant: "" [broken {}]',
      'tool: "The tool failed."',
      'assistant: "It is broken."',
      'RUN_FINISHED success',
    ],
  },
  {
    name: 'a denial',
    aiSdk: [
      'step-start',
      'weather {"city":"Oslo"} output-error: "This tool call was denied."',
      'weather {"city":"Rome"} output-available: "Rain in Rome."',
      'step-start',
      'text: Then not.',
    ],
    aiSdk7: [
      'step-start',
      'weather {"city":"Oslo"} output-denied: undefined',
      'weather {"city":"Rome"} output-available: "Rain in Rome."',
      'step-start',
      'text: Then not.',
    ],
    agUi: [
      'assistant: "" [weather {"city":"Oslo"}] [weather {"city":"Rome"}]',
      'tool: "This tool call was denied."',
      'tool: "Rain in Rome."',
      'assistant: "Then not."',
      'RUN_FINISHED success',
    ],
  },
  {
    name: 'an approval',
    aiSdk: [
      'step-start',
      'weather {"city":"Paris"} output-available: "Rain in Paris."',
      'weather {"city":"Rome"} output-error: "This tool call was denied."',
      'data-approval: {"toolCallId":"c/1/a","toolName":"weather","localId":"a","asked":{"city":"Oslo"},"status":"approved"}',
      'data-approval: {"toolCallId":"c/1/b","toolName":"weather","localId":"b","status":"denied"}',
      'step-start',
      'text: So.',
    ],
    aiSdk7: [
      'step-start',
      'weather {"city":"Paris"} output-available: "Rain in Paris."',
      'weather {"city":"Rome"} output-denied: undefined',
      'data-approval: {"toolCallId":"c/1/a","toolName":"weather","localId":"a","asked":{"city":"Oslo"},"status":"approved"}',
      'data-approval: {"toolCallId":"c/1/b","toolName":"weather","localId":"b","status":"denied"}',
      'step-start',
      'text: So.',
    ],
    agUi: [
      'assistant: "" [weather {"city":"Oslo"}] [weather {"city":"Rome"}]',
      'tool: "Rain in Paris."',
      'tool: "This tool call was denied."',
      'assistant: "So."',
      'RUN_FINISHED success',
    ],
  },
  {
    name: 'a suspension',
    aiSdk: [
      'step-start',
      'pay {} input-available: undefined',
      'data-suspended: {"toolCallId":"c/1/p","toolName":"pay","localId":"p","request":{"amount":5}}',
    ],
    agUi: ['assistant: "" [pay {}]', 'RUN_FINISHED success'],
  },
  {
    name: 'progress',
    aiSdk: ['step-start', 'upload {} output-available: {"a":1}', 'step-start', 'text: Uploaded.'],
    agUi: [
      'assistant: "" [upload {}]',
      'tool: "Done."',
      'assistant: "Uploaded."',
      'RUN_FINISHED success',
    ],
  },
  {
    name: 'a fault in the middle',
    aiSdk: ['step-start', 'text: Hel', 'weather {} output-error: "The tool was not run."'],
    agUi: ['assistant: "Hel" [weather {"ci]', 'tool: "The tool was not run."', 'RUN_ERROR'],
  },
  {
    name: 'an interrupt with a message',
    aiSdk: ['step-start', 'text: Stopped by you.'],
    agUi: ['assistant: "Stopped by you."', 'RUN_FINISHED cancelled'],
  },
  {
    name: 'an interrupt in the middle',
    aiSdk: ['step-start', 'text: As far as th', 'w {} output-error: "The tool was not run."'],
    agUi: [
      'assistant: "As far as th" [w {"]',
      'tool: "The tool was not run."',
      'RUN_FINISHED cancelled',
    ],
  },
  {
    name: 'an interrupt of tools',
    aiSdk: [
      'step-start',
      'text: Wait. ',
      'never {} output-error: "The tool failed."',
      'never {} output-error: "The tool failed."',
      'step-start',
      'text: Enough.',
    ],
    agUi: [
      'assistant: "Wait. " [never {}] [never {}]',
      'tool: "The tool failed."',
      'tool: "The tool failed."',
      'assistant: "Enough."',
      'RUN_FINISHED cancelled',
    ],
  },
  {
    name: 'an abort',
    aiSdk: ['step-start', 'reasoning: Hm', 'text: I w'],
    agUi: ['reasoning: "Hm"', 'assistant: "I w"', 'RUN_FINISHED cancelled'],
  },
  {
    name: 'a sub-agent',
    aiSdk: [
      'step-start',
      'text: I ask. ',
      'ask {"n":1} output-available: "Below again."',
      'ask {"n":2} output-available: "Below again."',
      'data-agent: {"agent":["editor","researcher"],"toolCallId":"c/1/w","status":"replied","reason":"answer","text":"Below again."}',
      'data-agent: {"agent":["editor","researcher"],"toolCallId":"c/1/v","status":"replied","reason":"answer","text":"Below again."}',
      'step-start',
      'text: Above.',
    ],
    agUi: [
      'assistant: "I ask. " [ask {"n":1}] [ask {"n":2}]',
      'tool: "Below again."',
      'tool: "Below again."',
      'assistant below: "Below. " [weather {"city":"Bergen"}]',
      'tool below: "Rain in Bergen."',
      'assistant below: "Below. " [weather {"city":"Bergen"}]',
      'tool below: "Rain in Bergen."',
      'reasoning below: "hm"',
      'assistant below: "Below again."',
      'reasoning below: "hm"',
      'assistant below: "Below again."',
      'assistant: "Above."',
      'RUN_FINISHED success',
    ],
  },
  {
    name: 'a sub-agent that fails',
    aiSdk: [
      'step-start',
      'fail {} output-error: "The tool failed."',
      'data-agent: {"agent":["editor","failing"],"toolCallId":"c/1/f","status":"failed","text":"The service did not respond as expected. Please try again."}',
      'step-start',
      'text: Above all the same.',
    ],
    agUi: [
      'assistant: "" [fail {}]',
      'tool: "The tool failed."',
      'assistant below: "Bel"',
      'assistant: "Above all the same."',
      'RUN_FINISHED success',
    ],
  },
  {
    name: 'structured output',
    aiSdk: [
      'step-start',
      'text: {"city":"Oslo","days":[1,2]}',
      'data-output: {"city":"Oslo","days":[1,2]}',
    ],
    agUi: ['assistant: "{\\"city\\":\\"Oslo\\",\\"days\\":[1,2]}"', 'RUN_FINISHED success'],
  },
  {
    name: 'a message that is begun anew',
    aiSdk: [
      'step-start',
      'reasoning: a',
      'text: First, ',
      'weather {} output-error: "The tool was not run."',
      'data-discarded: {"messageId":"c/1"}',
      'text: Second.',
    ],
    aiSdk7: ['step-start', 'text: Second.'],
    agUi: [
      'reasoning: "a"',
      'assistant: "First, " [weather {"a]',
      'tool: "The tool was not run."',
      'assistant: "Second."',
      'RUN_FINISHED success',
    ],
  },
  {
    name: 'an edited answer',
    aiSdk: [
      'step-start',
      'reasoning: Hm.',
      'text: A mask: sk-hunter2.',
      'data-discarded: {"messageId":"c/1"}',
      'text: A mask: ***.',
    ],
    aiSdk7: ['step-start', 'text: A mask: ***.'],
    agUi: [
      'reasoning: "Hm."',
      'assistant: "A mask: sk-hunter2."',
      'assistant: "A mask: ***."',
      'RUN_FINISHED success',
    ],
  },
];

describe('the final message of each client', () => {
  it.each(rows)('$name', ({ name, aiSdk, aiSdk7 = aiSdk, agUi }) =>
    serving(played, async (url) => {
      const { message } = await readStream(await askByAiSdk(url, name));
      expect(linesOf(message)).toEqual((await installed()) === 7 ? aiSdk7 : aiSdk);
      expect(linesOfRun(await watched(agUiClient(url, name)))).toEqual(agUi);
    }),
  );
});

/** An endless answer that knows whether anybody listens. */
const endless = () => {
  let left: () => void = () => undefined;
  const hasLeft = new Promise<void>((resolve) => (left = resolve));
  const model = scriptedModel(
    concat(of(text('Once upon a time')), NEVER).pipe(finalize(() => left())),
  );
  return { agent: createAgent({ model }), hasLeft };
};

describe('a client that leaves', () => {
  it('I5: ends the call, with the AI SDK', async () => {
    const { agent, hasLeft } = endless();
    const controller = new AbortController();
    await serving(
      (input, demand) => agent.stream$(input, { demand }),
      async (url) => {
        const chunks = await askByAiSdk(url, 'Go on.', controller.signal);
        await chunks.getReader().read();
        controller.abort();
        await hasLeft;
      },
    );
  });

  it('I5: ends the call, with AG-UI', async () => {
    const { agent, hasLeft } = endless();
    await serving(
      (input, demand) => agent.stream$(input, { demand }),
      async (url) => {
        const client = agUiClient(url, 'Go on.');
        const run = client.runAgent({}, { onTextMessageContentEvent: () => client.abortRun() });
        await hasLeft;
        await run;
      },
    );
  });
});

describe('a client that stops reading', () => {
  it('I16: pauses the model, down to the socket, and loses nothing', async () => {
    const pieces = 4000;
    let sent = 0;
    const open = async function* (): AsyncGenerator<ModelChunk> {
      for (; sent < pieces; sent += 1) yield await Promise.resolve(text('x'.repeat(4096)));
      yield { type: 'finish', finish: 'stop' };
    };
    const events = (input: string, demand: Parameters<Answer>[1]): Observable<AgentEvent> => {
      const paused$ = demand.open$.pipe(
        filter((isOpen) => !isOpen),
        take(1),
      );
      paused = firstValueFrom(paused$);
      const model = { name: 'long', stream$: () => fromPull(open, demand) };
      return createAgent({ model }).stream$(input, { demand });
    };
    let paused: Promise<unknown> = Promise.resolve();
    await serving(events, async (url) => {
      const reader = (await askByAiSdk(url, 'Much.')).getReader();
      await reader.read();
      await paused;
      expect(sent).toBeLessThan(pieces);
      let length = 0;
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        if (value.type === 'text-delta') length += value.delta.length;
      }
      expect(length).toBe(pieces * 4096);
    });
  });
});

describe('a malformed approval request', () => {
  it.each(['/chat', '/ag-ui'])('I10: is refused before the call begins: %s', (path) =>
    serving(played, async (url) => {
      const response = await fetch(`${url}${path}`, { method: 'POST', body: '{"messages":1}' });
      expect(response.status).toBe(400);
      expect(await response.json()).toEqual({
        error: expect.stringMatching(
          /^The request is malformed: '(?:messages|threadId|id)' must be /,
        ),
      });
    }),
  );
});
