/** A bare application with which the service is compared. */
export default { poweredByHeader: false, agentRules: false, serverExternalPackages: ['pg'] }
