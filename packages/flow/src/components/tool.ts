import type { Tool } from '@millrace/core';
import { defer, map } from 'rxjs';
import type { ToolParams } from '../document.js';
import { fillRecord } from '../render.js';
import { textOutput, type Work, workedBy } from '../work.js';
import { runOnce$ } from './run-once.js';

/** Runs a tool with an input that templates write. It is held to the tool's schema, as that of a model is. */
export const toolWork =
  (id: string, { input = {} }: ToolParams, tool: Tool): Work =>
  (scope) =>
    defer(() => runOnce$(id, tool, fillRecord(input, scope), scope)).pipe(
      map((reply) => workedBy(reply, ({ output: _details, ...answer }) => textOutput(answer))),
    );
