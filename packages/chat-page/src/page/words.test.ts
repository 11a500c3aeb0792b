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
    const view = h(ToolOutput, { output: forged.output, renderers: '/views.js' });
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
