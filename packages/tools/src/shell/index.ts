// Tools that run programs.
export { runCommand, type RunCommandOptions } from './run-command.js';
