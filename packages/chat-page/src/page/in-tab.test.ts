import { describe, expect, it } from '@jest/globals';
import { type ComponentChildren, h } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { NEVER } from 'rxjs';
import { ApprovalForm } from './approval-form.js';
import { type Actions, ActionsContext } from './pieces.js';
import { ResultForm, UncertainForm } from './result-form.js';
import { settingsOf } from './settings.js';

const tab = 'https://chat.example/#a';

const shown = (children: ComponentChildren, framed: Partial<Actions>): string =>
  renderToString(
    h(ActionsContext.Provider, {
      value: {
        ...{
          send: () => undefined,
          announce: () => undefined,
          settings: settingsOf('{"uncertain":"user"}'),
        },
        ...{ rate$: () => NEVER, decide$: () => NEVER, ...framed },
      },
      children,
    }),
  );

const call = { toolCallId: 't', toolName: 'pay' };
const approval = { ...call, status: 'requested', token: 'x', mayEdit: true } as const;

describe('what a tool waits for, in a frame of another site', () => {
  it.each([
    [
      'an approval',
      () => h(ApprovalForm, { approval, input: { to: 'Ann' }, isOver: false }),
      'Ann',
    ],
    [
      'an approval without a token',
      () =>
        h(ApprovalForm, {
          approval: { ...call, status: 'requested', mayEdit: false },
          input: {},
          isOver: false,
        }),
      'May <b>Pay</b> run',
    ],
    [
      'an approval of a sub-agent',
      () => h(ApprovalForm, { approval, input: undefined, isOver: false }),
      'May <b>Pay</b> run',
    ],
    [
      'a question',
      () =>
        h(ResultForm, { suspended: { ...call, localId: 't', request: 'Which?' }, isOver: false }),
      'Which?',
    ],
    ['an uncertain outcome', () => h(UncertainForm, { uncertain: call }), 'It may have happened'],
  ])('is shown with a link, and without anything to press or fill in: %s', (name, node, words) => {
    const framed = shown(node(), { tab });
    expect(framed).toContain(words);
    expect(framed).toContain(`<a href="${tab}" target="_blank" rel="noopener">`);
    expect(framed).not.toMatch(/<(?:button|input|textarea|select|form)\b/u);
    if (name !== 'an approval without a token') expect(shown(node(), {})).toMatch(/<button\b/u);
  });
});
