import { describe, expect, it } from '@jest/globals';
import { textOf, tool } from 'millrace';
import { citationsIn } from 'millrace/retrieval';
import { jsonSchema } from 'millrace/schema';
import { sessions } from 'millrace/sessions';
import {
  type ScriptedAnswer,
  type ScriptedModel,
  scriptedModel,
  text,
  toolCall,
} from 'millrace/testing';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { of, throwError } from 'rxjs';
import { play } from './flow.test-support.js';
import { flowAgent } from './flow-agent.js';

const read = (name: string): unknown =>
  JSON.parse(readFileSync(join(import.meta.dirname, '..', 'documents', `${name}.json`), 'utf8'));
const json = (value: unknown): ScriptedAnswer => [text(JSON.stringify(value))];

/** What a model was told and asked, request by request. */
const asked = ({ requests }: ScriptedModel): readonly (readonly [string | undefined, string])[] =>
  requests.map(({ system, messages }) => [
    system,
    messages.map((message) => `${message.role}: ${textOf(message)}`).join('\n'),
  ]);

describe('support-router', () => {
  const findOrder = tool({
    name: 'find_order',
    description: 'Finds an order.',
    input: jsonSchema({
      type: 'object',
      properties: { number: { type: 'string' } },
      required: ['number'],
    }),
    run: ({ number }) => {
      if (number !== 'A-17') throw new Error('No such order.');
      return { number, state: 'sent' };
    },
  });
  const routerOf = (small: readonly ScriptedAnswer[], ...large: readonly ScriptedAnswer[]) => {
    const models = { small: scriptedModel(...small), large: scriptedModel(...large) };
    const agent = flowAgent(read('support-router'), {
      models,
      tools: [findOrder],
      retrievers: {
        manuals: {
          retrieve$: ({ text: query }) => of([{ source: 'mill.md', text: `On ${query}` }]),
        },
      },
    });
    return { agent, ...models };
  };

  it('G6: looks up an order, and streams what the agent at the end says as its own', async () => {
    const { agent, small, large } = routerOf(
      [json({ category: 'order' }), json({ number: 'A-17' })],
      [text('It is '), text('on its way.')],
    );
    const { log, streamed, reply } = await play(agent, 'Where is A-17?');
    expect(log).toEqual([
      'preCall',
      ...['topic/preCall', 'topic/postCall'],
      ...['find_number/preCall', 'find_number/postCall'],
      ...['order/preCall', 'order/preActing', 'order/postActing', 'order/postCall'],
      ...['answer_order/preCall', 'answer_order/postCall'],
      'postCall',
    ]);
    expect(streamed).toBe('It is on its way.');
    expect(textOf(reply)).toBe(streamed);
    expect(reply).toMatchObject({ name: 'support-router', reason: 'answer' });
    expect(asked(small)).toEqual([
      [expect.stringContaining('- product: How a product works'), 'user: Where is A-17?'],
      [expect.stringContaining('Find the number'), 'user: Where is A-17?'],
    ]);
    expect(asked(large)).toEqual([
      [
        'You answer customers about their orders, in three sentences at most. The order:\n{"number":"A-17","state":"sent"}',
        'user: Where is A-17?',
      ],
    ]);
  });

  it('G6: asks for the number, in words of its own', async () => {
    const { agent } = routerOf([json({ category: 'order' }), json({ number: ' ' })]);
    const { log, reply } = await play(agent, 'Where is it?');
    expect(log).not.toContain('order/preCall');
    expect(textOf(reply)).toMatch(/^Which order is it about\?/u);
  });

  it('G6: continues if a tool has failed, with its message', async () => {
    const { agent, large } = routerOf(
      [json({ category: 'order' }), json({ number: 'B-1' })],
      [text('I cannot find it.')],
    );
    const { log, reply } = await play(agent, 'Where is B-1?');
    expect(log.filter((line) => line.startsWith('order/'))).toEqual([
      ...['order/preCall', 'order/preActing', 'order/postActing', 'order/error'],
    ]);
    expect(asked(large)[0]?.[0]).toMatch(/The order:\nThere is no such order\.$/u);
    expect(textOf(reply)).toBe('I cannot find it.');
  });

  it('G6, R7: answers from the manuals, and what it cites can be found', async () => {
    const { agent, large } = routerOf([json({ category: 'product' })], [text('Yes [1].')]);
    const { log, streamed, reply } = await play(agent, 'Can it grind rye?');
    expect(log).toEqual([
      'preCall',
      ...['topic/preCall', 'topic/postCall'],
      ...['manual/preCall', 'manual/retrieved', 'manual/postCall'],
      ...['answer_product/preCall', 'answer_product/postCall'],
      'postCall',
    ]);
    expect(asked(large)[0]?.[0]).toContain('[1] mill.md\n> On Can it grind rye?');
    expect(streamed).toBe('Yes [1].');
    expect(citationsIn(streamed, reply.sources ?? []).cited).toMatchObject([
      { number: 1, passage: { source: 'mill.md' } },
    ]);
  });

  it('G6: passes on what no category fits, when the model has been corrected in vain', async () => {
    const wrong = json({ category: 'weather' });
    const { agent, small } = routerOf([wrong, wrong, wrong]);
    const { reply } = await play(agent, 'Will it rain?');
    small.verify();
    expect(textOf(reply)).toBe('I pass this on to a colleague, who will write to you today.');
  });

  it('G6: in a session, agents see as much of the conversation as they ask for', async () => {
    const { agent, large } = routerOf(
      [json({ category: 'product' }), json({ category: 'product' })],
      [text('Yes.')],
      [text('Coarsely.')],
    );
    const session = sessions(agent).open('s');
    await play(session, 'Can it grind rye?');
    await play(session, 'How?');
    expect(asked(large)[1]?.[1]).toBe('user: Can it grind rye?\nassistant: Yes.\nuser: How?');
  });
});

describe('deep-research', () => {
  const pages: Readonly<Record<string, string>> = { 'Who?': 'Millers.', 'When?': 'In 1800.' };
  const readPage = tool({ name: 'read_page', description: 'Reads a page.', run: () => 'A page.' });
  const large = () =>
    scriptedModel(json({ questions: ['Who?', 'Why?', 'When?'] }), [text('The report.')]);
  const answers: ScriptedAnswer = ({ messages }) =>
    messages.some(({ role }) => role === 'tool')
      ? [text(`Read: ${textOf(messages[0] ?? { content: [] })}`)]
      : [toolCall('read_page')];

  it('G6: looks into each part with its own search, and writes from the notes in their order', async () => {
    const models = { large: large(), small: scriptedModel(answers, answers, answers, answers) };
    const agent = flowAgent(read('deep-research'), {
      models,
      tools: [readPage],
      retrievers: {
        web: {
          retrieve$: ({ text: query }) => {
            const page = pages[query];
            return of(page === undefined ? [] : [{ source: `${query}.html`, text: page }]);
          },
        },
      },
    });
    const { log, streamed, reply, events } = await play(agent, 'Mills?');
    expect(asked(models.large)[1]).toEqual([
      'Write a report that answers the question from the notes. Say what is still open.',
      'user: Mills?\n\nNotes:\n\n## 1. Who?\n\nRead: Who?\n\n## 3. When?\n\nRead: When?',
    ]);
    expect(streamed).toBe('The report.');
    expect(textOf(reply)).toBe('The report.');
    expect(log.filter((line) => line.endsWith('search/preCall'))).toHaveLength(3);
    expect(log.filter((line) => line.endsWith('read/preCall'))).toHaveLength(2);
    const ids = new Set(events.map(({ callId }) => callId.slice(callId.indexOf('/') + 1)));
    expect(ids).toContain('step/look_into/step/3/read');
  });
});

describe('sql-assistant', () => {
  const rows = [{ city: 'Oslo', mills: 3 }];
  const runSql = tool({
    name: 'run_sql',
    description: 'Runs a query.',
    input: jsonSchema({
      type: 'object',
      properties: { sql: { type: 'string' } },
      required: ['sql'],
    }),
    run: ({ sql }) => {
      if (sql.includes('mill ')) throw new Error('no such table: mill');
      return rows;
    },
  });
  const toTable = ({ rows: first, rows_again: again }: Readonly<Record<string, unknown>>) => {
    const text = first === '' ? again : first;
    const list = JSON.parse(String(text)) as Readonly<Record<string, unknown>>[];
    return list.map((row) => Object.values(row).join(' | ')).join('\n');
  };
  const assistant = (...answers: readonly ScriptedAnswer[]) => {
    const coder = scriptedModel(...answers);
    const agent = flowAgent(read('sql-assistant'), {
      models: { coder },
      tools: [runSql],
      code: { to_table: toTable },
      retrievers: {
        tables: { retrieve$: () => of([{ source: 'mills', text: 'mills(city, mills)' }]) },
        queries: { retrieve$: () => throwError(() => new Error('down')) },
      },
    });
    return { agent, coder };
  };

  it('G6: writes a query, runs it, and says both the table and what it means', async () => {
    const { agent, coder } = assistant(json({ sql: 'select * from mills' }), [text('Oslo leads.')]);
    const { log, streamed, reply } = await play(agent, 'Where are mills?');
    expect(textOf(reply)).toBe('Oslo | 3\n\nOslo leads.');
    expect(streamed).toBe('');
    expect(asked(coder)[0]?.[0]).toMatch(/> mills\(city, mills\)\n\nQueries that worked:\n$/u);
    expect(log).toContain('examples/error');
    expect(log.some((line) => line.startsWith('mend/'))).toBe(false);
  });

  it('G6: mends a query that fails', async () => {
    const { agent, coder } = assistant(
      json({ sql: 'select * from mill ' }),
      [toolCall('run_sql', { sql: 'select 1' })],
      [text('select 1')],
      [text('Oslo leads.')],
    );
    const { log, reply } = await play(agent, 'Where are mills?');
    coder.verify();
    expect(textOf(reply)).toBe('Oslo | 3\n\nOslo leads.');
    expect(log.filter((line) => line.endsWith('run_again/preActing'))).toHaveLength(1);
  });
});
