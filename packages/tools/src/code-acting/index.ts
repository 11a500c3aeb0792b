// Code acting: the model writes JavaScript that calls the tools of the agent.
export { codeActing, type CodeActingOptions } from './code-acting.js';
