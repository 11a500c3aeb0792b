// A tool that sends e-mail.
export { type Mail, type MailApprover, sendMail, type SendMailOptions } from './send-mail.js';
