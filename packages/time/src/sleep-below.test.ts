import { describe, expect, it } from '@jest/globals';
import { createAgent, type Model, only, textOf, tool } from 'millrace';
import { suspendBelow } from 'millrace/journal';
import { agentTool } from 'millrace/teams';
import { finish, text, toolCall } from 'millrace/testing';
import { mergeMap, of } from 'rxjs';
import { collect, createWorld, day } from './world.test-support.js';

const world = () => {
  const noted: string[] = [];
  const note = tool({ name: 'note', description: 'Notes.', run: () => `${noted.push('note')}` });
  /** Notes, sleeps for each of these durations, and says with what each sleep ended. */
  const sleeper = (name: string, ...sleeps: readonly object[]) => {
    const model: Model = {
      name,
      stream$: ({ messages }) => {
        const results = messages.flatMap(({ content }) =>
          content.flatMap((it) => (it.type === 'tool_result' ? [textOf(it)] : [])),
        );
        const next = results.length === 0 ? toolCall('note') : undefined;
        const sleep = sleeps[results.length - 1];
        const use = next ?? (sleep && toolCall('sleep', sleep as Record<string, unknown>));
        return of(use ?? text(`${name}: ${results.slice(1).join(' | ')}`), finish());
      },
    };
    return createAgent({ name, model, tools: [note] });
  };
  return { ...createWorld(), noted, sleeper };
};

const named = (agent: ReturnType<typeof createAgent>) =>
  agentTool(agent, { description: agent.name });

/** Asks each agent once, in one message, and then says what they answered. */
const asking = (...names: readonly string[]): Model => ({
  name: 'lead',
  stream$: ({ messages }) => {
    const last = messages.at(-1);
    const answers = last?.role === 'tool' ? last.content.map((it) => textOf(it)) : undefined;
    const uses = names.map((name) => toolCall(name, { user_prompt: 'Go.' }, name));
    return of(...(answers ? [text(answers.join(' & '))] : uses), finish());
  },
});

describe('a sleep in a sub-agent', () => {
  it('suspends the root call, and continues the sub-agent at the same place, in another process', () => {
    const { runTo, start, noted, sleeper } = world();
    const make = () =>
      start(asking('boss'), {
        tools: [
          named(
            createAgent({
              name: 'boss',
              model: asking('clerk'),
              tools: [named(sleeper('clerk', { days: 3 }, { days: 2 }))],
            }),
          ),
        ],
        use: [suspendBelow],
      });
    const first = make();
    const seen = first.ask('ada', 'Come back in three days.', 'c1');
    expect(seen).toMatchObject([{ reason: 'suspended', suspensions: [{ from: 'program' }] }]);
    runTo(day);
    first.stop();
    runTo(2 * day);
    const second = make();
    runTo(3 * day - 1);
    expect(second.notices).toEqual([]);
    runTo(9 * day);
    expect(second.notices).toMatchObject([
      { type: 'woken', sleep: { callId: 'c1' }, value: { reason: 'suspended' } },
      {
        type: 'woken',
        sleep: { callId: 'c1~woken1', sessionId: 'ada', agent: 'helper', at: 5 * day },
        value: { reason: 'answer', text: expect.stringMatching(/^clerk: .*04T.* \| .*06T/u) },
      },
    ]);
    expect(noted).toHaveLength(1);
  });

  it('ends with the last one, if several sleep at the same time', () => {
    const { runTo, start, noted, sleeper } = world();
    const tools = [named(sleeper('one', { days: 1 })), named(sleeper('two', { days: 2 }))];
    const { ask, notices } = start(asking('one', 'two'), { tools, use: [suspendBelow] });
    ask('ada', 'Sleep.', 'c1');
    runTo(2 * day - 1);
    expect(notices).toEqual([]);
    runTo(3 * day);
    expect(notices.map(({ type }) => type)).toEqual(['woken', 'woken']);
    expect(notices[0]).toMatchObject({ value: { reason: 'answer' } });
    expect(noted).toHaveLength(2);
  });

  it('is refused without suspendBelow, and a warning names the fix', () => {
    const { runTo, start, sleeper } = world();
    const { ask, users } = start(asking('clerk'), {
      tools: [named(sleeper('clerk', { days: 3 }))],
    });
    const warnings = collect(
      users.open$('ada').pipe(mergeMap((ada) => ada.events$.pipe(only('warning')))),
    );
    const seen = ask('ada', 'Come back.', 'c1');
    runTo(1_000);
    expect(seen).toMatchObject([
      {
        text: expect.stringMatching(
          /^clerk: A sleep in this sub-agent can take up to 30 seconds\./u,
        ),
      },
    ]);
    expect(warnings.seen.map(({ message }) => message)).toEqual([
      "A long sleep in a sub-agent needs suspendBelow. Add layers to 'use' of the agent.",
    ]);
  });

  it('is short without suspendBelow', () => {
    const { runTo, start, sleeper } = world();
    const tools = [named(sleeper('clerk', { seconds: 30 }))];
    const seen = start(asking('clerk'), { tools }).ask('ada', 'Come back.', 'c1');
    runTo(31_000);
    expect(seen).toMatchObject([{ text: expect.stringContaining('The sleep has ended') }]);
  });
});
