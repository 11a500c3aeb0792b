// Loaded before the suite, which imports a function of Node 22 for a command that is not used here.
import * as fs from 'node:fs';
import { register } from 'node:module';

const dataUrl = (code: string): string => `data:text/javascript,${encodeURIComponent(code)}`;

if (!('globSync' in fs)) {
  const withGlob = dataUrl("export * from 'node:fs'; export const globSync = () => [];");
  register(
    dataUrl(`export const resolve = (name, context, next) =>
      name === 'fs' && context.parentURL?.includes('/@modelcontextprotocol/conformance/')
        ? { url: ${JSON.stringify(withGlob)}, shortCircuit: true }
        : next(name, context);`),
  );
}
