import { sendResult } from '../send-result.js';
import { startAnswerServer } from '../server/start-answer-server.js';
import { httpSorts } from './http-sorts.js';
import { type LeaksOptions, measureLeaks } from './measure-leaks.js';
import { scriptedSorts } from './scripted-sorts.js';
import { createShared } from './shared.js';

// Asked with the kind of models, and the options of `measureLeaks`.
const [kind, perBlock, blocks] = process.argv.slice(2);
const options: LeaksOptions = { perBlock: Number(perBlock), blocks: Number(blocks) };
const shared = createShared();
if (kind === 'http') {
  const server = await startAnswerServer();
  const leaks = await measureLeaks(shared, httpSorts(server, shared), options);
  await server.close();
  sendResult(leaks);
} else {
  sendResult(await measureLeaks(shared, scriptedSorts(shared), options));
}
