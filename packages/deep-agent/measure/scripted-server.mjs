// A model on 127.0.0.1 that plays the same tasks to any framework, by the Chat Completions API. Each conversation is named by its first question.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { Buffer } from 'node:buffer';
import console from 'node:console';
import { performance } from 'node:perf_hooks';
import process from 'node:process';

const filler = (words, length) => `${words} `.repeat(Math.ceil(length / (words.length + 1)));
const search = (query) => ['search', { query }];
const report = filler('The mill turns because the river falls.', 4_000);

/** As the examples of deepagents do: a researcher with sub-agents and a critic, and a deep agent within a deep agent. */
export const tasks = {
  research: {
    question: 'RESEARCH mills',
    instructions: 'Research, write final_report.md, and have it judged.',
    agents: {
      researcher: 'Researches one topic in depth.',
      critic: 'Judges the final report.',
    },
  },
  hierarchy: {
    question: 'HIERARCHY of mills',
    instructions: 'Let the specialist research, and answer.',
    agents: { specialist: 'Researches with agents of its own.' },
  },
};

const scripts = {
  'RESEARCH mills': [
    [['plan', ['Research', 'Write', 'Judge']]],
    [['write', 'question.txt', 'RESEARCH mills']],
    [
      ['task', 'researcher', 'RYE mills'],
      ['task', 'researcher', 'WHEAT mills'],
    ],
    [['write', 'final_report.md', `${report}END`]],
    [['task', 'critic', 'CRITIC of the report']],
    [['edit', 'final_report.md', 'END', 'Sources: rye, wheat.']],
    'The report is in final_report.md.',
  ],
  'RYE mills': [[search('rye'), search('rye prices')], [search('rye law')], filler('Rye.', 1_500)],
  'WHEAT mills': [[search('wheat'), search('wheat prices')], filler('Wheat.', 1_500)],
  'CRITIC of the report': [[['read', 'final_report.md']], 'Name the sources.'],
  'HIERARCHY of mills': [[['task', 'specialist', 'SPECIALIST on mills']], 'Mills are verified.'],
  'SPECIALIST on mills': [
    [['plan', ['News', 'Check']]],
    [search('news'), search('data')],
    [['task', 'checker', 'CHECK the claim']],
    'Verified.',
  ],
  'CHECK the claim': [[search('claim')], 'It is true.'],
};

/** The result of each search, which both offload above 10,000 characters or more. */
export const found = ({ query }) => filler(`About ${query}: water, stone and grain.`, 100_000);

const textOf = ({ content }) =>
  typeof content === 'string' ? content : content.map(({ text = '' }) => text).join('');

/** Starts the model. `toCall` turns a step into the name and the arguments of a tool. Counts what is sent. */
export const scriptedServer = async (toCall) => {
  const sent = { requests: 0, bytes: 0, subAgents: new Set() };
  const server = createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      const body = Buffer.concat(parts);
      const { messages, stream } = JSON.parse(body);
      const question = textOf(messages.find(({ role }) => role === 'user'));
      const turn = messages.filter(({ role }) => role === 'assistant').length;
      const name = Object.keys(scripts).find((it) => question.includes(it));
      const step = scripts[name][turn];
      sent.requests += 1;
      sent.bytes += body.length;
      sent.subAgents.add(name);
      const calls = typeof step === 'string' ? [] : step.map(toCall);
      const message = {
        role: 'assistant',
        content: typeof step === 'string' ? step : null,
        ...(calls.length > 0 && {
          tool_calls: calls.map(([tool, input], index) => ({
            ...{ index, id: `${name.split(' ')[0]}${turn}${index}`, type: 'function' },
            function: { name: tool, arguments: JSON.stringify(input) },
          })),
        }),
      };
      const choice = { index: 0, finish_reason: calls.length > 0 ? 'tool_calls' : 'stop' };
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      const answer = { id: randomUUID(), model: 'm', created: 1, usage };
      response.setHeader('content-type', stream ? 'text/event-stream' : 'application/json');
      response.end(
        stream
          ? `data: ${JSON.stringify({ ...answer, object: 'chat.completion.chunk', choices: [{ ...choice, delta: message }] })}\n\ndata: [DONE]\n\n`
          : JSON.stringify({
              ...answer,
              object: 'chat.completion',
              choices: [{ ...choice, message }],
            }),
      );
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const baseURL = `http://127.0.0.1:${server.address().port}/v1`;
  return { baseURL, sent, close: () => server.close() };
};

/** Plays a task eleven times, and prints what was sent, and the median of the times without the first. */
export const measure = async (name, { sent }, call) => {
  const times = [];
  for (let n = 0; n <= 10; n += 1) {
    Object.assign(sent, { requests: 0, bytes: 0, subAgents: new Set() });
    const [start, cpu] = [performance.now(), process.cpuUsage()];
    const { text, files } = await call();
    const { user, system } = process.cpuUsage(cpu);
    times.push([performance.now() - start, (user + system) / 1_000]);
    if (n === 10) {
      const median = (at) => {
        const [below, above] = times
          .slice(1)
          .map((it) => it[at])
          .sort((a, b) => a - b)
          .slice(4, 6);
        return ((below + above) / 2).toFixed(0);
      };
      console.log(
        `${name}: ${sent.requests} requests, ${sent.bytes} bytes (${Math.round(sent.bytes / 4)} tokens), ` +
          `${sent.subAgents.size - 1} sub-agents, ${files.length} files, ${median(0)} ms, CPU ${median(1)} ms: ${text}`,
      );
      console.log(files.map(([path, length]) => `  ${path} ${length}`).join('\n'));
    }
  }
};
