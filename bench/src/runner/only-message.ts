import type { ChildProcess } from 'node:child_process';

/**
 * What a child process says in the end, as its only message. Rejects where it ends without it, with the last that it wrote to
 * stderr, or takes longer than so many milliseconds: then it is killed.
 */
export const onlyMessage = (child: ChildProcess, limitMs: number): Promise<unknown> =>
  new Promise((resolve, reject) => {
    let errors = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      errors = `${errors}${text}`.slice(-2_000);
    });
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`It took longer than ${limitMs / 1_000} s.`));
    }, limitMs);
    child.once('message', resolve);
    child.once('error', reject);
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      const how = signal ?? `exit code ${code ?? 'none'}`;
      reject(new Error(`It has ended before its time (${how}). ${reasonIn(errors)}`.trim()));
    });
  });

/** Node writes the error below the line of code that threw it, and above the stack. */
const reasonIn = (errors: string): string => {
  const lines = errors.trim().split('\n');
  return lines.find((line) => /^\w*Error\b/.test(line)) ?? lines.at(-1) ?? '';
};
