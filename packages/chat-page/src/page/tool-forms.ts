// The forms of tool calls, what they have asked, and their views. Few answers need them.
export { ApprovalForm } from './approval-form.js';
export { Answered, ResultForm, UncertainForm } from './result-form.js';
export { ToolOutput } from './tool-output.js';
