import { describe, expect, it } from '@jest/globals';
import { h } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { BehaviorSubject, EMPTY, NEVER, Subject } from 'rxjs';
import { performing } from './commands.js';
import { begun, type Conversation, loaded, restored, unknownIn } from './conversation-state.js';
import { type Actions, ActionsContext } from './pieces.js';
import { createServer } from './server.js';
import { settingsOf } from './settings.js';
import { ToolOutput } from './tool-output.js';
import { Tool } from './tool-view.js';
import { ToolsContext } from './tools.js';
import { isQuestion, type ToolPart, type UiMessage, type UiPart } from './ui-message.js';

const actions: Actions = {
  ...{ send: () => undefined, announce: () => undefined, settings: settingsOf('{}') },
  ...{ rate$: () => NEVER, decide$: () => NEVER },
};

const call = { toolCallId: 'c/0/t', toolName: 'send' };
const uncertain = (outcome?: 'again' | 'happened' | 'failed'): UiPart => ({
  type: 'uncertain',
  data: { ...call, outcome },
});
const done: ToolPart = { ...call, type: 'tool', state: 'done', input: {}, output: 'Sent.' };
const answerOf = (...parts: readonly UiPart[]): UiMessage => ({
  ...{ id: 'c', role: 'assistant', parts, end: { reason: 'answer' } },
});

const shown = (part: ToolPart, other: readonly UiPart[]): string =>
  renderToString(
    h(ActionsContext.Provider, {
      value: actions,
      children: h(Tool, { part, message: answerOf(part, ...other), isRunning: false }),
    }),
  );

describe("the user's word for an uncertain tool", () => {
  const forged: ToolPart = { ...done, output: { view: 'outcome', outcome: 'again', of: 'me' } };

  it('is shown in words instead of its result', () => {
    expect(shown(done, [uncertain('again')])).toMatch(
      /Not done.*You said that it has not happened/u,
    );
    expect(shown(done, [uncertain('happened')])).toMatch(/Done.*You said that it has happened/u);
    expect(shown(forged, [uncertain('happened')])).not.toContain('&quot;');
  });

  it.each([
    ['without any', []],
    ['of another tool', [{ ...uncertain('again'), data: { ...call, toolCallId: 'x' } }]],
    ['that has not come', [uncertain()]],
  ] as const)('does not come from the output, %s', (_, others) => {
    const html = shown(forged, others as readonly UiPart[]);
    expect(html).not.toContain('You said');
    expect(html).toContain('Done');
  });

  it('leaves views of this name to the site', () => {
    const view = h(ToolOutput, { output: forged.output, renderers: '/views.js', schema: {} });
    expect(renderToString(view)).toBe('<div class="view"></div>');
  });

  it('comes with the facts, also from another tab', () => {
    const state: Conversation = {
      ...{ ...begun('a', []), status: 'ready' },
      messages: [answerOf(done, uncertain())],
    };
    expect(unknownIn(state)).toHaveLength(1);
    const data = { ...call, outcome: 'again' };
    const chunk = { type: 'data-uncertain', id: call.toolCallId, data };
    const after = restored({ c: [{ type: 'start' }, chunk] })(state);
    expect(after.messages).toEqual([answerOf(done, uncertain('again'))]);
    expect(unknownIn(after)).toEqual([]);
  });

  it('is asked for again once its tool call has a result, and shown until then', () => {
    const running: ToolPart = { ...done, state: 'running', output: undefined };
    const { end: _, ...open } = answerOf(running, uncertain('again'));
    const before: Conversation = { ...begun('a', []), status: 'ready', messages: [open] };
    const { end: __, ...answer } = answerOf(done);
    const after = loaded({ messages: [answer], branches: {} })(before);
    expect(unknownIn(after)).not.toEqual(unknownIn(before));
    expect(after.messages[0]?.parts).toEqual([done, uncertain('again')]);
  });

  it('is taken back if it was refused, and nothing else', () => {
    const sent$ = new Subject<never>();
    const running: ToolPart = { ...done, state: 'running', output: undefined };
    const earlier: UiMessage = { ...answerOf(done, uncertain('happened')), id: 'b' };
    const other = { ...call, toolCallId: 'c/0/u' };
    const state$ = new BehaviorSubject<Conversation>({
      ...{ ...begun('a', []), status: 'ready' },
      messages: [
        {
          ...earlier,
          parts: [
            { ...done, ...other },
            { type: 'uncertain', data: { ...other, outcome: 'happened' } },
          ],
        },
        answerOf(running, uncertain()),
      ],
    });
    const server = { ...createServer({ api: '/api', wait$: () => EMPTY }), settle$: () => sent$ };
    const { handle$ } = performing({ id: 'a', server, newId: () => 'q', state$ });
    const errors: unknown[] = [];
    handle$({ type: 'settle', toolCallId: call.toolCallId, outcome: 'again' }).subscribe({
      next: (update) => state$.next(update(state$.value)),
      error: (error: unknown) => errors.push(error),
    });
    const wordsIn = ({ messages }: Conversation) =>
      messages.flatMap(({ parts }) =>
        parts.flatMap((part) => (part.type === 'uncertain' ? [part.data.outcome] : [])),
      );
    expect(wordsIn(state$.value)).toEqual(['happened', 'again']);
    const late: UiMessage = { id: 'late', role: 'assistant', parts: [] };
    state$.next({ ...state$.value, messages: [...state$.value.messages, late] });
    sent$.error(new Error('It has failed.'));
    expect(errors).toHaveLength(1);
    expect(wordsIn(state$.value)).toEqual(['happened', undefined]);
    expect(state$.value.messages.at(-1)).toEqual(late);
  });
});

describe('a failed call with several questions', () => {
  it('has one answer, after the last of them', () => {
    const questions = ['c/0', 'c/1'].map((id): UiMessage => ({
      ...{ id, role: 'user', parts: [{ type: 'text', text: id, isOpen: false }] },
    }));
    const history = { messages: questions, branches: {} };
    const state = loaded(history)(begun('a', []));
    const facts = { c: [{ type: 'start' }, { type: 'error', errorText: 'It has failed.' }] };
    const after = restored(facts)(state);
    expect(after.messages.map(({ id }) => id)).toEqual(['c/0', 'c/1', 'c']);
    expect(after.messages.filter((it) => !isQuestion(it))).toHaveLength(1);
    expect(loaded(history)(after).messages.map(({ id }) => id)).toEqual(['c/0', 'c/1', 'c']);
  });
});

describe('the titles of a tool', () => {
  const tools = {
    send: {
      input: { title: 'Send a letter', properties: { to: { title: 'Recipient' } } },
      output: { properties: { id: { title: 'Receipt' } } },
    },
  };
  const titled = (part: ToolPart, others: readonly UiPart[] = []): string =>
    renderToString(
      h(ToolsContext.Provider, {
        value: tools,
        children: h(ActionsContext.Provider, {
          value: actions,
          children: h(Tool, { part, message: answerOf(part, ...others), isRunning: false }),
        }),
      }),
    );
  const failed: ToolPart = {
    ...{ ...call, type: 'tool', state: 'failed', input: { to: 'Ann' } },
    errorText: 'The tool failed.',
  };

  it('stand for its name, its arguments and its result, also if no one decides', () => {
    expect(titled(failed)).toMatch(/Send a letter.*Recipient.*Ann/u);
    const { errorText: _, ...open } = failed;
    expect(titled({ ...open, state: 'running', output: { id: 7 } })).toContain('Send a letter');
    expect(titled({ ...failed, toolName: 'toString' })).toContain('To string');
  });

  it('come from the schema of an approval first: that of a sub-agent is not among them', () => {
    const denied: UiPart = {
      type: 'approval',
      data: { ...call, status: 'denied', mayEdit: false, inputSchema: { title: 'Send it' } },
    };
    expect(titled(failed, [denied])).toContain('Send it');
  });
});

describe('the reason of a denial', () => {
  const denied: ToolPart = { ...done, state: 'denied', output: undefined };
  const approval = (reason?: string): UiPart => ({
    type: 'approval',
    data: { ...call, status: 'denied', mayEdit: false, expiresAt: 1, ...(reason && { reason }) },
  });

  it('is that of the person, or in words if no one has decided', () => {
    expect(shown(denied, [approval('Too much')])).toContain('Reason: Too much');
    const late = shown(denied, [approval('No one decided on it in time.')]);
    expect(late).toContain('No one decided in time, so it did not run.');
    expect(late).not.toContain('Reason');
    expect(shown(denied, [approval()])).not.toContain('Reason');
  });

  it('comes with the facts once, if a queue has asked and the stream has none', () => {
    const state: Conversation = {
      ...{ ...begun('a', []), status: 'ready' },
      messages: [answerOf(denied, approval())],
    };
    expect(unknownIn(state)).toEqual(['c denied']);
    const data = { ...call, status: 'denied', reason: 'No one decided on it in time.' };
    const facts = { c: [{ type: 'start' }, { type: 'data-approval', data }, { type: 'finish' }] };
    const after = restored(facts)(state);
    expect(shown(denied, after.messages[0]?.parts ?? [])).toContain('No one decided in time');
    expect(unknownIn(after)).toEqual([]);
  });
});
