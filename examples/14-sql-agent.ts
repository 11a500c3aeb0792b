// An agent for one job, by composition: tools for a database, instructions, and a form for models without tools of their own.
import { PGlite } from '@electric-sql/pglite';
import { type Agent, createAgent, type Model, textOf } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import { action } from '@millrace/presets';
import { sqlTools } from '@millrace/tools/sql';

const instructions = 'You answer from a Postgres database. Read its schema before you query it.';

const analyst = (model: Model, postgres: PGlite): Agent =>
  createAgent(action({ model, instructions, tools: sqlTools({ postgres }) }));

const db = new PGlite();
await db.exec(`create table mills (name text, wheels int); insert into mills values ('Lea', 3)`);
const uses = (sql: string) => `{"tool": "sql_query", "inputs": {"sql": "${sql}"}}`;
const [bad, wrong, good] = ['drop table mills', 'select weels from mills', 'select * from mills'];
const queries = [bad, wrong, good].map(uses);
const says = ['{"tool": "sql_schema"}', ...queries, '{"final_answer": "Lea."}'];
const model = scriptedModel(...says.map((statement) => [text(`Thought: …\nAction: ${statement}`)]));
const reply = await analyst(model, db).call('Who has wheels?', { limits: { toolBackoffMs: 0 } });
for (const { name, output } of reply.toolCalls) console.log(`${name}:`, output);
console.log(textOf(reply));
await db.close();
