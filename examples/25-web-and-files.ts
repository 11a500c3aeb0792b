// Tools for the web and for files: an agent reads a page and edits a file. Approvals show the change as a diff.
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAgent } from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { fileTools } from '@millrace/tools/files';
import { fetchPage } from '@millrace/tools/web';

const page = '<main><h1>Release 2</h1><p>See the <a href="/log">changes</a>.</p></main>';
const server = createServer((_, response) =>
  response.setHeader('content-type', 'text/html').end(page),
).listen(0, '127.0.0.1');
await once(server, 'listening');
const address = server.address();
const port = typeof address === 'object' && address !== null ? address.port : 0;
const root = mkdtempSync(join(tmpdir(), 'millrace-'));
writeFileSync(join(root, 'NEWS.md'), '# News\n\nRelease 1 is here.\n');

const model = scriptedModel(
  [toolCall('fetch_page', { url: `http://127.0.0.1:${port}/news` })],
  [toolCall('fetch_page', { url: 'http://169.254.169.254/latest/meta-data/' })],
  [toolCall('edit_file', { path: 'NEWS.md', oldText: 'Release 1', newText: 'Release 2' })],
  [toolCall('edit_file', { path: '../NEWS.md', oldText: 'Release 1', newText: 'Release 2' })],
  [text('The news name the new release.')],
);
// Private addresses are refused, except for this server. A person would decide on the change.
const web = fetchPage({ allowPrivate: ['127.0.0.1'], ports: [port] });
const files = fileTools({ root, approve: ({ diff }) => (console.log(diff), true) });
const { toolCalls } = await createAgent({ model, tools: [web, ...files] }).call('Update the news.');
for (const { name, output } of toolCalls) console.log(name, '→', output.replaceAll(`${port}`, '…'));
console.log(readFileSync(join(root, 'NEWS.md'), 'utf8'));
rmSync(root, { recursive: true });
server.close();
