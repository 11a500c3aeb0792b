// An agent for one job, by composition: two tools, instructions, and a form for models without tools of their own.
import { PGlite } from '@electric-sql/pglite';
import { type Agent, createAgent, type Model, textOf, tool } from '@millrace/core';
import { action } from '@millrace/core/presets';
import { scriptedModel, text } from '@millrace/core/testing';
import { z } from 'zod';

const columns = `select table_name, string_agg(column_name || ' ' || data_type, ', ') as columns
  from information_schema.columns where table_schema = 'public' group by table_name`;
const instructions = 'You answer from a Postgres database. Read its schema before you query it.';

const analyst = (model: Model, db: PGlite): Agent => {
  const schema = tool({
    name: 'schema',
    description: 'Lists the tables with their columns.',
    run: async () => (await db.query(columns)).rows,
  });
  const query = tool({
    name: 'query',
    description: 'Runs one SELECT, and gives its rows.',
    input: z.object({ sql: z.string() }),
    run: ({ sql }) =>
      db.transaction(async (transaction) => {
        await transaction.query('set transaction read only');
        return (await transaction.query(sql)).rows;
      }),
  });
  return createAgent(action({ model, instructions, tools: [schema, query] }));
};

const db = new PGlite();
await db.exec(`create table mills (name text, wheels int); insert into mills values ('Lea', 3)`);
const uses = (sql: string) => `{"tool": "query", "inputs": {"sql": "${sql}"}}`;
const [bad, good] = [uses('drop table mills'), uses('select * from mills')];
const says = ['{"tool": "schema"}', bad, good, '{"final_answer": "Lea."}'];
const model = scriptedModel(...says.map((action) => [text(`Thought: …\nAction: ${action}`)]));
const reply = await analyst(model, db).call('Who has wheels?', { limits: { toolBackoffMs: 0 } });
for (const { name, output } of reply.toolCalls) console.log(`${name}:`, output);
console.log(textOf(reply));
