#!/usr/bin/env node
console.error(
  ['The command is a package of its own:', 'npx @millrace/cli', ...process.argv.slice(2)].join(' '),
);
process.exitCode = 1;
