import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { toMermaid } from './to-mermaid.js';

const read = (name: string): unknown =>
  JSON.parse(readFileSync(join(import.meta.dirname, '..', 'documents', `${name}.json`), 'utf8'));

describe('toMermaid', () => {
  it('G6: draws components, what ways depend on, and errors', () => {
    const picture = toMermaid(read('support-router'));
    expect(picture).toBe(toMermaid(read('support-router')));
    expect(picture.split('\n')).toEqual(
      expect.arrayContaining([
        'flowchart TD',
        '  n0(["begin<br/>begin"])',
        '  n1{{"topic<br/>categorize, small"}}',
        '  n3{"has_number<br/>switch"}',
        '  n5[["order<br/>tool, find_order"]]',
        '  n7[/"say_order<br/>message"/]',
        '  n8[("manual<br/>retrieval, manuals")]',
        '  n0 --> n1',
        '  n1 -->|"product"| n8',
        '  n1 -->|"otherwise"| n11',
        '  n3 -->|"#123;#123;find_number@output.number#125;#125; is empty"| n4',
      ]),
    );
    expect(toMermaid(read('sql-assistant'))).toContain('  n4 -.->|"on error"| n5\n');
  });

  it('G6: draws an iteration as a frame', () => {
    expect(toMermaid(read('deep-research'))).toBe(
      `flowchart TD
  n0(["begin<br/>begin"])
  n1["plan<br/>agent, large"]
  subgraph n2["look_into: for each of #123;#123;plan@output.questions#125;#125;"]
    n3(["part<br/>begin"])
    n4[("search<br/>retrieval, web")]
    n5{"anything<br/>switch"}
    n6["read<br/>agent, small"]
    n7[/"note<br/>message"/]
    n3 --> n4
    n4 --> n5
    n5 -->|"#123;#123;search@output#125;#125; is not empty"| n6
    n6 --> n7
  end
  n8["write<br/>agent, large"]
  n9[/"report<br/>message"/]
  n0 --> n1
  n1 --> n2
  n2 --> n8
  n8 --> n9
`,
    );
  });

  it('G6: text of a document is only text in the picture', () => {
    const hostile = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 80 }),
      fc.constantFrom('"]\n  click n0 "javascript:x"', '`**`', '%%{init}%%', 'end', '#quot;', '|'),
    );
    fc.assert(
      fc.property(hostile, hostile, (one, other) => {
        const conditions = [{ value: '{{sys.query}}', operator: 'equals', operand: one }];
        const picture = toMermaid({
          version: 1,
          name: other,
          components: {
            end: { component_name: 'begin', downstream: ['s'] },
            s: {
              component_name: 'switch',
              params: { cases: [{ conditions, to: ['a'] }] },
            },
            a: { component_name: 'agent', params: { llm_id: other }, downstream: ['say'] },
            say: { component_name: 'message', params: { content: 'x' } },
          },
        });
        const lines = picture.split(/[\n\r\u2028\u2029\u0085]/u);
        expect(lines).toHaveLength(9);
        expect(lines[3]).toMatch(/^ {2}n2\["a<br\/>agent,[^"<>`|{}[\]%&\\*~^$]*"\]$/u);
        expect(lines[6]).toMatch(/^ {2}n1 -->\|"[^"<>`|{}[\]%&\\*~^$]*"\| n2$/u);
      }),
    );
  });

  it('G6: draws nothing that cannot run', () => {
    expect(() => toMermaid({ version: 1 })).toThrow('The flow cannot run, it has 2 problems:');
  });
});
