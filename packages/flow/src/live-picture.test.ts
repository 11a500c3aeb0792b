import { describe, expect, it } from '@jest/globals';
import type { AgentEvent } from 'millrace';
import { marbles } from 'millrace/testing';
import { last, map, scan } from 'rxjs';
import { flowAgent } from './flow-agent.js';
import { flowStates, livePicture } from './live-picture.js';
import { toMermaid } from './to-mermaid.js';

const document = {
  version: 1,
  name: 'f',
  variables: { n: { type: 'number', default: 1 } },
  components: {
    begin: { component_name: 'begin', downstream: ['a', 'b'] },
    a: { component_name: 'code', params: { function: 'a' } },
    b: { component_name: 'code', params: { function: 'b', on_error: { value: '' } } },
    choice: {
      component_name: 'switch',
      params: {
        cases: [
          {
            conditions: [{ value: '{{a@output}}', operator: 'equals', operand: 'x' }],
            to: ['say'],
          },
        ],
        otherwise: ['never'],
      },
      upstream: ['a', 'b'],
    },
    say: { component_name: 'message', params: { content: 'Said.' } },
    never: { component_name: 'message', params: { content: 'Never.' } },
  },
};

/** The classes in a picture: `n1,n2 done`. */
const classesIn = (picture: string): string =>
  [...picture.matchAll(/^ {2}class (.*)$/gmu)].map(([, names]) => names).join('; ');

describe('livePicture', () => {
  it('G6: follows a call, and a slow reader gets the newest picture', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const a = cold('--(x|)');
      const b = cold('----#');
      const agent = flowAgent(document, { code: { a: () => a, b: () => b } });
      const seen = (draw: () => typeof a) =>
        agent.stream$('q').pipe(livePicture(document, { draw }), map(classesIn));
      const slow = cold<never>('---|');
      expectObservable(seen(() => slow)).toBe('---0--1--(2|)', {
        0: '',
        1: 'n2 running; n0,n1 done',
        2: 'n0,n1,n3,n4 done; n2 failed; n5 skipped',
      });
      expectSubscriptions(slow.subscriptions).toBe(['^--!', '---^--!', '------^--!']);
      const failing = cold<never>('-#');
      expectObservable(seen(() => failing)).toBe('-#');
      expectSubscriptions(failing.subscriptions).toBe('^!');
    });
  });

  it('G6: emits each change to a quick reader, and completes with the source', () => {
    marbles(({ cold, expectObservable }) => {
      const sources = { a: () => cold('--(x|)'), b: () => cold('---(y|)') };
      const agent = flowAgent(document, { code: sources });
      const picture$ = agent.stream$('q').pipe(livePicture(document), map(classesIn));
      const start = ['', 'n0 done', 'n1 running; n0 done', 'n1,n2 running; n0 done'];
      const end = ['n0,n1,n2 done', 'n0,n1,n2,n3 done', 'n0,n1,n2,n3,n4 done'];
      const all = [...start, 'n2 running; n0,n1 done', ...end, `${end[2] ?? ''}; n5 skipped`];
      expectObservable(
        picture$.pipe(
          scan((seen, it) => [...seen, it], new Array<string>()),
          last(),
        ),
      ).toBe('---(s|)', { s: all });
    });
  });
});

describe('flowStates', () => {
  it('G6: starts with the defaults, and ignores other agents and damaged states', () => {
    const event = (type: string, more: object = {}) =>
      ({ type, agent: ['f'], ...more }) as unknown as AgentEvent;
    marbles(({ cold, expectObservable }) => {
      const initial = {
        components: Object.fromEntries(
          Object.keys(document.components).map((id) => [id, 'pending']),
        ),
        variables: { n: 1 },
      };
      const state = { components: {}, variables: {} };
      const event$ = cold('abcde|', {
        a: event('preCall'),
        b: event('preCall', { agent: ['f', 'a'] }),
        c: event('stateChanged', { name: 'flow', state }),
        d: event('stateChanged', { name: 'flow', state: 5 }),
        e: event('stateChanged', { name: 'plan', state }),
      });
      expectObservable(event$.pipe(flowStates(document))).toBe('i-s--|', { i: initial, s: state });
    });
  });

  it('G6: a picture of a state has its colours, and ignores what is not in the document', () => {
    const picture = toMermaid(document, {
      components: { a: 'running', b: 'suspended', x: 'done' },
    });
    expect(classesIn(picture)).toBe('n1 running; n2 suspended');
    expect(() => livePicture(document, { drow: 1 } as never)).toThrow("has no option 'drow'");
    expect(() => livePicture({})).toThrow('The flow cannot run');
  });
});
