/** A bare application beside which the service is measured. */
export default { poweredByHeader: false, agentRules: false, serverExternalPackages: ['pg'] }
