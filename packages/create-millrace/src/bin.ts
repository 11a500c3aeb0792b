#!/usr/bin/env node
import { init } from './project/init.js';

process.exitCode = await init({
  command: 'npm create millrace',
  argv: process.argv.slice(2),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  directory: process.cwd(),
});
