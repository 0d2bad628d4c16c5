"""The platform's figures over time: sampled every minute by the leader, thinned out as they age, shown to operators."""
