// The same as millrace.mjs on Mastra 1.71.0. Copy both files to a folder with `npm install @mastra/core @mastra/libsql zod`, and run it there.
import { Mastra } from '@mastra/core';
import { createStep, createWorkflow } from '@mastra/core/workflows';
import { LibSQLStore } from '@mastra/libsql';
import { z } from 'zod';
import { measure, say } from './processes.mjs';

const schemas = { inputSchema: z.any(), outputSchema: z.any() };
const step = (id) => createStep({ id, ...schemas, execute: async () => (say(id), {}) });
const flow = createWorkflow({ id: 'flow', ...schemas })
  .then(step('asked'))
  .sleep(8000)
  .then(step('again'))
  .commit();

measure(import.meta.filename, async (directory, isFirst) => {
  const storage = new LibSQLStore({ id: 'store', url: `file:${directory}/mastra.db` });
  const mastra = new Mastra({ workflows: { flow }, storage, logger: false });
  if (isFirst) (await mastra.getWorkflow('flow').createRun()).start({ inputData: {} });
  else await mastra.restartAllActiveWorkflowRuns();
});
