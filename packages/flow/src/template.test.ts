import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isQuick } from './flow.test-support.js';
import { scopeOf } from './graph.test-support.js';
import { fillRecord, outputOf, render, templateOf } from './render.js';
import { readTemplate } from './template.js';

const user = { id: 'u', role: 'user', content: [{ type: 'text', text: 'Hi' }] } as const;
const scope = scopeOf({
  sys: {
    query: 'Why?',
    sessionId: 's1',
    history: [user, { ...user, role: 'assistant' }],
    metadata: { user_id: '42', 'a.b': 'dots' },
  },
  outputs: new Map([
    ['text', { text: 'plain' }],
    ['json', { text: '{"a": [ {"b": null, "c": 1.5} ]}' }],
    ['value', { text: 'shown', value: { list: ['x', { y: true }], none: null } }],
    ['empty', { text: '' }],
  ]),
  items: new Map([
    ['each', { value: { title: 'T' }, index: 3 }],
    ['lines', { value: 'line', index: 1 }],
  ]),
});
const filled = (text: string): string => render(templateOf(text), scope);

describe('templates', () => {
  it.each([
    ['', ''],
    ['no template', 'no template'],
    ['{{sys.query}}', 'Why?'],
    ['{{ sys.query }}!', 'Why?!'],
    ['{{sys.session_id}}', 's1'],
    ['{{sys.history}}', 'user: Hi\nassistant: Hi'],
    ['{{sys.metadata.user_id}} {{sys.metadata.a.b}}', '42 dots'],
    ['{{sys.metadata.constructor}}{{sys.metadata.__proto__}}', ''],
    ['<{{text@output}}>', '<plain>'],
    ['{{text@output.a}}{{text@output.length}}', ''],
    ['{{json@output.a.0.c}}', '1.5'],
    ['{{json@output.a.0}}', '{"b":null,"c":1.5}'],
    ['{{json@output.a.0.b}}{{json@output.a.1}}{{json@output.a.length}}', ''],
    ['{{value@output}}', 'shown'],
    ['{{value@output.list}}', '["x",{"y":true}]'],
    ['{{value@output.list.1.y}}', 'true'],
    ['{{value@output.constructor.name}}{{value@output.__proto__}}', ''],
    ['{{json@output.__proto__}}{{each@item.__proto__}}{{each@item.constructor.name}}', ''],
    ['{{value@output.list.0.0}}', ''],
    ['{{empty@output}}{{other@output}}', ''],
    ['{{each@item}} {{each@item.title}} {{each@index}}', '{"title":"T"} T 3'],
    ['{{lines@item}}', 'line'],
    ['\\{{sys.query}} {{sys.query}}', '{{sys.query}} Why?'],
    ['{ {sys.query} } }}', '{ {sys.query} } }}'],
    ['{"a": {"b": 1}}', '{"a": {"b": 1}}'],
  ])('G6: fills %j', (text, expected) => {
    expect(readTemplate(text).faults).toEqual([]);
    expect(filled(text)).toBe(expected);
  });

  it('G6: a reference alone gives the output as it is', () => {
    expect(outputOf(templateOf('{{value@output}}'), scope)).toBe(scope.outputs.get('value'));
    expect(outputOf(templateOf('{{value@output}} '), scope)).toEqual({ text: 'shown ' });
    expect(outputOf(templateOf('{{value@output.list}}'), scope)).toEqual({
      text: '["x",{"y":true}]',
      value: ['x', { y: true }],
    });
    expect(outputOf(templateOf('{{other@output}}'), scope)).toEqual({ text: '' });
  });

  it('G6: an input is filled at every depth, with values if they are alone; keys are no templates', () => {
    const input = {
      '{{sys.query}}': ['{{value@output.list}}', 'x {{sys.query}}', 5, null],
      deep: { item: '{{each@item}}', index: '{{each@index}}', text: '{{text@output}}' },
    };
    expect(fillRecord(input, scope)).toEqual({
      '{{sys.query}}': [['x', { y: true }], 'x Why?', 5, null],
      deep: { item: { title: 'T' }, index: 3, text: 'plain' },
    });
  });

  it('G6, X15: what a template is filled with is never read as one', () => {
    const hostile = fc.array(
      fc.constantFrom('{{sys.query}}', '{{b@output}}', '{{', '}}', '\\{{', 'x', '{{a@output}}'),
      { maxLength: 6 },
    );
    fc.assert(
      fc.property(hostile, hostile, (one, other) => {
        const [a, b] = [one.join(''), other.join('')];
        const own = scopeOf({
          sys: { ...scope.sys, query: b },
          outputs: new Map([
            ['a', { text: a }],
            ['b', { text: b, value: { deep: [a] } }],
          ]),
        });
        const text = '{{a@output}}|{{b@output.deep.0}}|{{sys.query}}';
        expect(render(templateOf(text), own)).toBe(`${a}|${a}|${b}`);
        expect(fillRecord({ x: '{{b@output.deep}}' }, own)).toEqual({ x: [a] });
      }),
    );
  });

  it('X6: is read in time that grows with its length', () => {
    for (const piece of ['{{', '{{a', '{{sys.', '\\{{', '{{a@output.', '{{ ', '}}']) {
      const long = piece.repeat(200_000 / piece.length);
      expect(isQuick(500, () => [readTemplate(long), readTemplate(`{{${long}}}`)])).toBe(true);
    }
  });
});
