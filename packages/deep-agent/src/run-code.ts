import { tool, type Tool, toolOutput, type ToolOutput } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { map } from 'rxjs';
import type { Sandbox, SandboxResult } from './file-system.js';

/** Creates the tool `run_code`, which runs code in a sandbox and returns its output, exit code and changed files. */
export const runCode = (sandbox: Sandbox): Tool =>
  tool({
    name: 'run_code',
    exclusive: true,
    // The sandbox has its own limit.
    timeoutMs: 3_600_000,
    description:
      `Runs code that can read and write the files, and returns its output, exit code and changed files. ` +
      `Print what you need. ${sandbox.language}`,
    input: jsonSchema({
      type: 'object',
      properties: {
        code: { type: 'string', minLength: 1, maxLength: 100_000, description: 'The whole code.' },
      },
      required: ['code'],
      additionalProperties: false,
    }),
    run: ({ code }, context) =>
      sandbox
        .run$(code, context)
        .pipe(map((emission) => (typeof emission === 'string' ? emission : outputOf(emission)))),
  });

const maxListed = 50;

const outputOf = ({ text, exitCode, files }: SandboxResult): ToolOutput => {
  const listed = files.slice(0, maxListed).join(', ');
  const more = files.length > maxListed ? ` and ${files.length - maxListed} more` : '';
  const changed = files.length === 0 ? '' : `\n[Changed files: ${listed}${more}]`;
  return toolOutput({
    content: `${text}${changed}`,
    isError: exitCode === undefined,
    details: { files, ...(exitCode !== undefined && { exitCode }) },
  });
};
